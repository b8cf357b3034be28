import { AsynchInterface } from './asynch/asynch.ts';
import {
  type ClientArguments,
  type Config,
  NO_KEY,
  requireReady,
  resolveConfig,
  settingsProblems,
  toOptions,
  unknownNames,
} from './config.ts';
import { Context } from './context.ts';
import { DiscreteInterface } from './discrete.ts';
import { ConfigError, RequestFailedError } from './errors.ts';
import { failingAs } from './failure.ts';
import { readJson } from './http/answer.ts';
import { modelsUrl, speakable } from './http/url.ts';
import type { Platform } from './platform/platform.ts';
import type { ModelList } from './types.ts';

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
    this.#problems = [...unknownNames(options), ...settingsProblems(this.#config)];
    const begin = () => this.#begin();
    this.discrete = new DiscreteInterface(begin);
    this.asynch = new AsynchInterface(begin);
  }

  /** Throws one `ConfigError` that lists every problem of the settings, a missing key included. */
  validateConfig(): void {
    const problems = this.#config.apiKey ? this.#problems : [NO_KEY, ...this.#problems];
    if (problems.length > 0) throw new ConfigError(problems);
  }

  /** The models the server offers, how well they do, and the licence of the weights in use. */
  async models(): Promise<ModelList> {
    const context = this.#begin();
    const url = modelsUrl(context.config.asynchUrl);
    return failingAs(RequestFailedError, undefined, async () => {
      const answer = await context.callPatiently('Listing the models', { method: 'GET', url });
      return readJson<ModelList>(answer, speakable(url), ({ models }) => Array.isArray(models));
    });
  }

  #begin(): Context {
    return new Context(this.#platform, requireReady(this.#config, this.#problems));
  }
}
