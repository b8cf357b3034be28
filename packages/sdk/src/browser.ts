// Entry point for browsers.
import { PlatformClient } from './client.ts';
import type { ClientArguments } from './config.ts';
import { browserPlatform } from './platform/browser.ts';
import type { ClientOptions } from './types.ts';

export * from './public.ts';

/** Client of an Undertone server. A page has no environment variables: pass a key and a URL. */
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
