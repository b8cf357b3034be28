import { readFile } from 'node:fs/promises';
import wabt from 'wabt';

export const polyphaseSource = new URL('../src/resample/polyphase.wat', import.meta.url);
export const polyphaseBinary = new URL('../src/resample/polyphase.wasm', import.meta.url);

export async function compilePolyphase(): Promise<Uint8Array> {
  const assembler = await wabt();
  const source = await readFile(polyphaseSource, 'utf8');
  const module = assembler.parseWat('polyphase.wat', source, { simd: true, relaxed_simd: true });
  try {
    return module.toBinary({}).buffer;
  } finally {
    module.destroy();
  }
}
