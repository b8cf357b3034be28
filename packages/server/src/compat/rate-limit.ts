import { ASYNCH_LIMITS, type RateLimitStatus } from '@undertone/contract';
import type { Services } from '../services.ts';

const BYTES_IN_MB = 1024 * 1024;

/** `remaining`: the value that this request got in its own `ratelimit-remaining` header. */
export function readRateLimit(
  { settings, classifier, streams }: Services,
  owner: string,
  remaining: number,
): RateLimitStatus {
  const { rateLimit, streamLimit, queueLimit } = settings;
  return {
    policy_name: 'default',
    limits: {
      requests_per_minute: rateLimit || null,
      max_audio_size_mb: ASYNCH_LIMITS.maxFileBytes / BYTES_IN_MB,
      max_audio_duration_seconds: ASYNCH_LIMITS.maxSeconds,
      max_concurrent_requests: queueLimit + classifier.stats().threads,
      max_concurrent_streams: streamLimit || null,
    },
    current_usage: {
      requests_per_minute: rateLimit > 0 ? rateLimit - remaining : null,
      concurrent_streams: streams.count(owner),
    },
  };
}
