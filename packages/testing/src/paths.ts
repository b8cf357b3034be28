import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Ten short recordings of actors, named after the intended emotion: 16-bit mono WAV at 16 kHz. */
export const VOICES = fileURLToPath(new URL('../../../examples/voices/', import.meta.url));
