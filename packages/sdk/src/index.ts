// The entry for Node, Bun and Deno.
import { PlatformClient } from './client.ts';
import type { ClientArguments } from './config.ts';
import { nodePlatform } from './platform/node.ts';
import type { ClientOptions } from './types.ts';

export * from './public.ts';

/** Talks to an Undertone server. Settings not given come from the environment, then from the defaults. */
export class EmotionClient extends PlatformClient {
  constructor(options?: ClientOptions);
  constructor(
    apiKey?: string,
    partSize?: number,
    showProgress?: boolean,
    maxThreads?: number,
    retryAttempts?: number,
  );
  constructor(...args: ClientArguments) {
    super(nodePlatform, args);
  }
}
