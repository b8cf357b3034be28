import { randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

export const SECRET_FILE = 'presign.key';
const SECRET_BYTES = 32;

/** The secret of this installation, made at its first start: what addresses for parts are signed with. */
export async function readSecret(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, SECRET_FILE);
  const secret = (await readIfThere(path)) ?? (await make(path));
  if (secret.length !== SECRET_BYTES) {
    throw new Error(`${path} is damaged. Remove it; uploads that are under way will have to begin again.`);
  }
  return secret;
}

/** Appears under its name only when it is whole, and never takes the place of one that another process made. */
async function make(path: string): Promise<Buffer> {
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.write(randomBytes(SECRET_BYTES));
    await file.sync();
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
  return readFile(path);
}

function readIfThere(path: string): Promise<Buffer | null> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
