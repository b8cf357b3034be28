import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAllowed, requireWebhookUrl } from '../../src/webhooks/address.ts';

test('public addresses are allowed', () => {
  for (const address of ['8.8.8.8', '100.63.255.255', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
    assert.ok(isAllowed(address, false), address);
  }
  assert.ok(isAllowed('64:ff9b::8.8.8.8', false), 'behind a NAT64 gateway');
  assert.ok(isAllowed('::ffff:0:8.8.8.8', false), 'translated');
});

test('private and loopback addresses need the setting, in every notation', () => {
  for (const address of [
    ...['127.0.0.1', '127.9.9.9', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '0.0.0.0'],
    ...['100.64.0.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '::1', '::', 'fd12::1', 'ff02::1'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '64:ff9b::10.0.0.1', '64:ff9b::7f00:1'],
    // Less known entries of the IANA registries of special-purpose addresses.
    ...['64:ff9b:1::1', '64:ff9b:1::8.8.8.8', '::ffff:0:127.0.0.1', '::ffff:0:10.0.0.1', 'fec0::1'],
    ...['192.88.99.1', '3fff::1', '5f00::1', '100:0:0:1::1'],
  ]) {
    assert.ok(!isAllowed(address, false), address);
    assert.ok(isAllowed(address, true), address);
  }
});

test('link-local and cloud metadata addresses are never allowed', () => {
  for (const address of [
    ...['169.254.169.254', '169.254.0.1', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', 'fe80::1'],
    ...['fe80::1%eth0', 'fd00:ec2::254', '100.100.100.200', '64:ff9b::a9fe:a9fe', 'no address'],
    ...['168.63.129.16', '::ffff:168.63.129.16', '::ffff:0:169.254.169.254'],
  ]) {
    for (const allowPrivate of [false, true]) assert.ok(!isAllowed(address, allowPrivate), address);
  }
});

test('a URL is checked for scheme, syntax and literal addresses', () => {
  const refused = (url: string, allowPrivate: boolean, words: RegExp) =>
    assert.throws(() => requireWebhookUrl(url, allowPrivate), { code: 'bad_request', message: words });
  for (const url of [
    'https://example.org/hook?a=1',
    'https://example.org:8443/',
    'https://[2606:4700::1]/',
  ]) {
    assert.equal(requireWebhookUrl(url, false).href, url);
  }
  for (const url of [
    '',
    'example.org/hook',
    'ftp://example.org/',
    'https://',
    'https://me:secret@example.org/',
  ]) {
    refused(url, true, /such as https/);
  }
  refused('http://example.org/', false, /https:.*SERVICE_WEBHOOK_PRIVATE=true/);
  assert.ok(requireWebhookUrl('http://localhost:9000/', true));
  // The last three are other notations of 127.0.0.1.
  for (const host of [
    '127.0.0.1',
    '10.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
  ]) {
    refused(`https://${host}/`, false, /private/);
    assert.ok(requireWebhookUrl(`https://${host}/`, true));
  }
  refused('http://169.254.169.254/latest/meta-data', true, /private/);
});
