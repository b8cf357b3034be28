import { startServerProcess } from '@undertone/testing/server-process';

export interface RealServer {
  /** The options of a client of this server. */
  readonly settings: { apiKey: string; baseUrl: string; showProgress: false };
  stop(): Promise<void>;
}

/** The real server with the real model, in its own process. */
export async function startRealServer(env: Record<string, string> = {}): Promise<RealServer> {
  const server = await startServerProcess(env);
  return {
    settings: { apiKey: server.key, baseUrl: server.url, showProgress: false },
    stop: () => server.stop(),
  };
}
