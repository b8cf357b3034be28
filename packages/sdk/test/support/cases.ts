import { readFile } from 'node:fs/promises';
import type { Route } from '@undertone/testing/faults';
import type { NumberName } from '../../src/config.ts';
import type { ClientOptions } from '../../src/types.ts';

type Operation =
  | 'discrete.emotions'
  | 'discrete.many'
  | 'asynch.upload'
  | 'asynch.resume'
  | 'asynch.submit'
  | 'asynch.emotions'
  | 'asynch.list'
  | 'asynch.webhookSecret'
  | 'asynch.delete'
  | 'models';

/** Cases shared by the clients in all languages. */
export interface Cases {
  settings: {
    name: NumberName;
    in: ('client' | Operation)[];
    default: number;
    accepts: number[];
    refuses: unknown[];
    messageContains: string[];
  }[];
  defaults: Record<'baseUrl' | 'discreteUrl' | 'asynchUrl', string> & {
    showProgress: boolean;
    classifyMaxTries: null;
  };
  environment: Record<'apiKey' | 'baseUrl' | 'discreteUrl' | 'asynchUrl' | 'logLevel', string>;
  /** The URLs that follow from options and environment variables. */
  addresses: {
    name: string;
    options: ClientOptions;
    environment: Record<string, string>;
    discreteUrl: string;
    asynchUrl: string;
  }[];
  config: { name: string; options: ClientOptions; problems: string[][] }[];
  backoff: {
    firstMs: number;
    longestMs: number;
    longestRetryAfterSeconds: number;
    delays: { retry: number; random: number; retryAfterSeconds?: number; delayMs: number }[];
    retryAfterHeaders: { header: string | null; now?: string; seconds: number | null }[];
    retryableStatuses: number[];
    finalStatuses: number[];
    schedules: {
      name: string;
      operation: Operation;
      route: Route;
      /** Statuses in turn, the last one repeated; null is the real response. */
      answers: (number | null | { status: number; retryAfter: string })[];
      settings: { maxRetries?: number; retryAttempts?: number };
      waits: [number, number][];
      ends: string | null;
    }[];
  };
  errors: {
    name: string;
    operation: Operation;
    status: number;
    headers: Record<string, string>;
    body: unknown;
    expect: {
      error: string;
      code: string;
      status: number | null;
      messageContains: string;
      requestId: string | null;
      retried: boolean;
      retryAfterSeconds?: number;
      problem?: Record<string, number | string>;
    };
  }[];
  /** The call that an operation makes, and its result for a response. */
  operations: {
    name: string;
    operation: Operation;
    options: Record<string, unknown>;
    /** Default: the response of the test server. */
    answer?: { status: number; headers?: Record<string, string>; body: unknown };
    call: { method: string; path: string; query: Record<string, string>; hasIdempotencyKey: boolean };
    /** Not checked if absent. */
    result?: unknown;
  }[];
  /** Invalid options. */
  refusals: { operation: Operation; options: Record<string, unknown>; messageContains: string[] }[];
  /** The original part size of an interrupted upload. */
  resume: {
    name: string;
    size: number;
    partSize: number;
    partCount: number;
    stored: [number: number, bytes: number][];
    begunWith: number;
  }[];
  requestIds: { example: string; accepts: string[]; refuses: unknown[] };
  urls: {
    join: { base: string; path: string; query: Record<string, string>; url: string }[];
    withQuery: { address: string; query: Record<string, string | null>; url: string }[];
    models: { asynchUrl: string; url: string }[];
    fileNames: { path: string; name: string }[];
  };
  parts: {
    size: number;
    partSize: number;
    count?: number;
    lastSize?: number;
    error?: string;
    code?: string;
  }[];
  etags: { etag: string; md5: string; matches: boolean }[];
  timestamps: { t: string; seconds: number }[];
}

export async function readCases(): Promise<Cases> {
  return JSON.parse(await readFile(new URL('../../../../clients/cases.json', import.meta.url), 'utf8'));
}
