import { API_KEY_HEADER } from '@undertone/contract';
import type { Config } from './config.ts';
import { type Answer, refusal } from './http/answer.ts';
import { withRetries } from './http/retry.ts';
import { type Call, Transport } from './http/transport.ts';
import { speakable } from './http/url.ts';
import { Log } from './log.ts';
import type { Platform } from './platform/platform.ts';

/** What the operations of one client share. */
export class Context {
  readonly platform: Platform;
  readonly config: Config & { readonly apiKey: string };
  readonly log: Log;
  readonly transport: Transport;

  constructor(platform: Platform, config: Config & { readonly apiKey: string }) {
    this.platform = platform;
    this.config = config;
    this.log = new Log(platform, config.logLevel);
    this.transport = new Transport(config.fetch, this.log);
  }

  /** One attempt at a call that carries the key. Any status but 2xx is a failure. */
  async call(call: Call): Promise<Answer> {
    const headers = { ...call.headers, [API_KEY_HEADER]: this.config.apiKey };
    const answer = await this.transport.send({ ...call, headers });
    if (answer.status < 200 || answer.status > 299) throw refusal(answer, speakable(call.url));
    return answer;
  }

  /** The same, made again after a passing failure as often as the client is set to. */
  callPatiently(what: string, call: Call): Promise<Answer> {
    const retries = { attempts: this.config.retryAttempts, what, signal: call.signal };
    return withRetries(this, retries, () => this.call(call));
  }
}
