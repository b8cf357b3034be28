import { shownOwner } from '../audit.ts';
import type { HeldBytes } from '../held-bytes.ts';
import type { LedgerStore } from '../stores/contracts.ts';
import type { Streams } from '../streams/registry.ts';
import type { Webhooks } from '../webhooks/deliver.ts';
import type { OwnerUseValue } from './metrics.ts';

interface OwnerUseOptions {
  readonly ledger: LedgerStore;
  readonly streams: Streams;
  readonly webhooks: Webhooks;
  readonly held: readonly HeldBytes[];
}

/** What each owner uses: in the store, the same in every process; and in this process. */
export async function readOwnerUse({
  ledger,
  streams,
  webhooks,
  held,
}: OwnerUseOptions): Promise<OwnerUseValue[]> {
  const values: OwnerUseValue[] = [];
  for (const [owner, { open, queued, storage, audioSeconds }] of await ledger.use()) {
    const stored = { open, queued, storage_bytes: storage, audio_seconds: audioSeconds };
    for (const [resource, value] of Object.entries(stored)) values.push({ owner, resource, value });
  }
  const memory = new Map<string, number>();
  for (const [owner, bytes] of held.flatMap((one) => [...one.byOwner()])) {
    memory.set(owner, (memory.get(owner) ?? 0) + bytes);
  }
  const here = { streams: streams.byOwner(), webhooks: webhooks.inFlight(), held_bytes: memory };
  for (const [resource, owners] of Object.entries(here)) {
    for (const [owner, value] of owners) values.push({ owner, resource, value });
  }
  return values.map((value) => ({ ...value, owner: shownOwner(value.owner) }));
}
