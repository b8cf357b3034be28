import { AsynchInterface } from './asynch/asynch.ts';
import {
  type ClientArguments,
  type Config,
  configProblems,
  requireReady,
  resolveConfig,
  throwIfInvalid,
  toOptions,
} from './config.ts';
import { DiscreteInterface } from './discrete.ts';
import { Context, readJson } from './http.ts';
import type { Platform } from './platform/platform.ts';
import { EmotionStream } from './stream.ts';
import type { ModelList, StreamOptions } from './types.ts';
import { modelsUrl, withoutQuery } from './urls.ts';

/** The client without its platform, which each entry point adds. */
export class PlatformClient {
  /** Short recordings: one call, one result. */
  readonly discrete: DiscreteInterface;
  /** Long recordings: upload, then fetch the timeline. */
  readonly asynch: AsynchInterface;
  readonly #platform: Platform;
  readonly #config: Config;
  readonly #problems: readonly string[];

  /** @internal */
  constructor(platform: Platform, args: ClientArguments) {
    const options = toOptions(args);
    this.#platform = platform;
    this.#config = resolveConfig(options, platform);
    this.#problems = configProblems(options, this.#config);
    const begin = () => this.#begin();
    this.discrete = new DiscreteInterface(begin);
    this.asynch = new AsynchInterface(begin);
  }

  /** Throws one `ConfigError` with all invalid settings, including a missing key. */
  validateConfig(): void {
    throwIfInvalid(this.#config, this.#problems);
  }

  /** The models of the server, their quality, and the licence of their weights. */
  async models(): Promise<ModelList> {
    const context = this.#begin();
    const url = modelsUrl(context.config.asynchUrl);
    const response = await context.callWithRetries('Listing the models', { method: 'GET', url });
    return readJson<ModelList>(response, withoutQuery(url), ({ models }) => Array.isArray(models));
  }

  /** Live audio: write samples and read a prediction every few seconds. */
  stream(options: StreamOptions = {}): EmotionStream {
    return new EmotionStream(this.#begin(), options);
  }

  #begin(): Context {
    return new Context(this.#platform, requireReady(this.#config, this.#problems));
  }
}
