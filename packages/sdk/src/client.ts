import { AsynchInterface } from './asynch/asynch.ts';
import {
  type ClientArguments,
  type Config,
  checkNames,
  configProblems,
  requireReady,
  resolveConfig,
  throwIfInvalid,
  toOptions,
} from './config.ts';
import { DiscreteInterface } from './discrete.ts';
import { Context, operate, readJson } from './http.ts';
import type { Platform } from './platform/platform.ts';
import { EmotionStream } from './stream.ts';
import { TokensInterface } from './tokens.ts';
import type { CallOptions, ModelList, StreamOptions } from './types.ts';
import { modelsUrl, withoutQuery } from './urls.ts';

/** The client without its platform, which each entry point adds. */
export class PlatformClient {
  /** Short recordings: one call, one result. */
  readonly discrete: DiscreteInterface;
  /** Long recordings: upload, then fetch the timeline. */
  readonly asynch: AsynchInterface;
  /** Short-lived tokens for programs that must not have the key, such as pages. */
  readonly tokens: TokensInterface;
  readonly #platform: Platform;
  readonly #config: Config;
  readonly #problems: readonly string[];

  /** @internal */
  constructor(platform: Platform, args: ClientArguments) {
    const options = toOptions(args);
    this.#platform = platform;
    this.#config = resolveConfig(options, platform);
    this.#problems = configProblems(options, this.#config);
    this.discrete = new DiscreteInterface(this.#begin);
    this.asynch = new AsynchInterface(this.#begin);
    this.tokens = new TokensInterface(this.#begin);
  }

  /** Throws one `ConfigError` with all invalid settings, including a missing key. */
  validateConfig(): void {
    throwIfInvalid(this.#config, this.#problems);
  }

  /** The models of the server, their quality, and the licence of their weights. */
  async models(options: CallOptions = {}): Promise<ModelList> {
    checkNames('models', options, ['signal', 'timeout']);
    return operate(this.#begin, options, async (context, signal) => {
      const url = modelsUrl(context.config.asynchUrl);
      const response = await context.callWithRetries('Listing the models', { method: 'GET', url, signal });
      return readJson<ModelList>(response, withoutQuery(url), ({ models }) => Array.isArray(models));
    });
  }

  /** Live audio: write samples and read a prediction every few seconds. */
  stream(options: StreamOptions = {}): EmotionStream {
    return new EmotionStream(this.#begin(), options);
  }

  /** Checks the settings; every operation begins with it. */
  readonly #begin = (): Context => new Context(this.#platform, requireReady(this.#config, this.#problems));
}
