import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { testApp } from '@undertone/testing/app';
import { type Recorded, Replay } from '@undertone/testing/replay';

const voice = readFileSync(new URL('../../../../../examples/voices/angry-1013.wav', import.meta.url));
const recordings = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.json'));
const service = await testApp();
const { url } = await service.listen();
service.services.worker.start();

for (const name of recordings) {
  test(`${name.replace('.json', '')} gets the recorded answers`, async () => {
    const recorded: Recorded[] = JSON.parse(readFileSync(`${import.meta.dirname}/${name}`, 'utf8'));
    await new Replay(url, service.key, voice).run(recorded);
  });
}
