/** An ETag as it is compared: some HTTP libraries strip the quotes, some proxies mark it as weak. */
export function plainEtag(etag: string): string {
  return etag.trim().replace(/^W\//, '').replaceAll('"', '').toLowerCase();
}
