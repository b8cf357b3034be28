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

/** The client on any platform; the package's entries give it theirs. */
export class PlatformClient {
  /** Short recordings, answered at once. */
  readonly discrete: DiscreteInterface;
  /** Long recordings, answered with a time line. */
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

  /** Throws one `ConfigError` that lists every problem of the settings, a missing key included. */
  validateConfig(): void {
    throwIfInvalid(this.#config, this.#problems);
  }

  /** The models the server offers, how well they do, and the licence of the weights in use. */
  async models(): Promise<ModelList> {
    const context = this.#begin();
    const url = modelsUrl(context.config.asynchUrl);
    const answer = await context.callWithRetries('Listing the models', { method: 'GET', url });
    return readJson<ModelList>(answer, withoutQuery(url), ({ models }) => Array.isArray(models));
  }

  /** Live audio: write samples, and read an emotion every few seconds. */
  stream(options: StreamOptions = {}): EmotionStream {
    return new EmotionStream(this.#begin(), options);
  }

  #begin(): Context {
    return new Context(this.#platform, requireReady(this.#config, this.#problems));
  }
}
