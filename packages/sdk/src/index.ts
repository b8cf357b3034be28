// Entry point for Node, Bun and Deno.
import { PlatformClient } from './client.ts';
import type { ClientArguments } from './config.ts';
import { nodePlatform } from './platform/node.ts';
import type { ClientOptions } from './types.ts';

export * from './public.ts';

/** Client of an Undertone server. Settings come from the arguments, then the environment, then the defaults. */
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
