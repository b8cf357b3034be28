// The entry for browsers.
import { PlatformClient } from './client.ts';
import type { ClientArguments } from './config.ts';
import { browserPlatform } from './platform/browser.ts';
import type { ClientOptions } from './types.ts';

export * from './public.ts';

/** Talks to an Undertone server. A page has no environment: give it a key and an address. */
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
    super(browserPlatform, args);
  }
}
