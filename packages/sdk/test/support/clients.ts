import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { FlakyServer } from '@undertone/testing/flaky-server';
import { PlatformClient } from '../../src/client.ts';
import { browserPlatform } from '../../src/platform/browser.ts';
import { nodePlatform } from '../../src/platform/node.ts';
import type { Platform } from '../../src/platform/platform.ts';
import type { ClientOptions } from '../../src/types.ts';

export const MIB = 1024 ** 2;

/** A client that records its delays instead of sleeping; everything else is real. */
export function clientWithoutWaits(options: ClientOptions, base: Platform = nodePlatform) {
  const waits: number[] = [];
  const lines: string[] = [];
  const record = (line: string) => void lines.push(line);
  const platform: Platform = {
    ...base,
    env: () => undefined,
    logger: { debug: record, info: record, warn: record, error: record },
    terminal: () => null,
    sleep: async (milliseconds, signal) => {
      signal?.throwIfAborted();
      waits.push(milliseconds);
    },
  };
  return { client: new PlatformClient(platform, [options]), waits, lines };
}

export const PLATFORMS = { node: nodePlatform, browser: browserPlatform } as const;

export async function flakyServer(t: TestContext): Promise<FlakyServer> {
  const server = await FlakyServer.start();
  t.after(() => server.stop());
  return server;
}

export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-sdk-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A file whose parts all differ, so that a misplaced part is noticed. */
export async function temporaryFile(t: TestContext, bytes: number, name = 'talk.wav'): Promise<string> {
  const path = join(await temporaryFolder(t), name);
  await writeFile(path, scrambled(bytes));
  return path;
}

/** Deterministic pseudo-random bytes. */
export function scrambled(length: number): Buffer {
  const words = new Uint32Array(Math.ceil(length / 4));
  let state = 0x9e3779b9;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return Buffer.from(words.buffer, 0, length);
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
