import { writeFile } from 'node:fs/promises';
import { compilePolyphase, polyphaseBinary } from './compile-polyphase.ts';

await writeFile(polyphaseBinary, await compilePolyphase());
