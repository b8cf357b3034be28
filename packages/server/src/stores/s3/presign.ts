import { createHash, createHmac } from 'node:crypto';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface PresignOptions {
  readonly credentials: S3Credentials;
  readonly region: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly expiresInSeconds: number;
}

/**
 * Signs PUT URLs for S3 (AWS Signature Version 4 in the query). By hand because one recording can have ten thousand parts: the
 * official client needs over a millisecond for each, this a few hundredths.
 */
export function s3PutSigner({
  credentials,
  region,
  now,
  expiresInSeconds,
}: PresignOptions): (url: URL) => string {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const time = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, '');
  const date = time.slice(0, 8);
  const scope = `${date}/${region}/s3/aws4_request`;
  const key = [date, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const query = [
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
    ['X-Amz-Content-Sha256', 'UNSIGNED-PAYLOAD'],
    ['X-Amz-Credential', `${accessKeyId}/${scope}`],
    ['X-Amz-Date', time],
    ['X-Amz-Expires', String(expiresInSeconds)],
    ...(sessionToken === undefined ? [] : [['X-Amz-Security-Token', sessionToken]]),
    ['X-Amz-SignedHeaders', 'host'],
  ]
    .map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`)
    .join('&');
  return (url) => {
    const canonical = `PUT\n${url.pathname}\n${query}\nhost:${url.host}\n\nhost\nUNSIGNED-PAYLOAD`;
    const hash = createHash('sha256').update(canonical).digest('hex');
    const signature = hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash}`).toString('hex');
    return `${url.origin}${url.pathname}?${query}&X-Amz-Signature=${signature}`;
  };
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
