import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What `npx undertone` runs. */
export const COMMAND = fileURLToPath(new URL('../../cli/bin/undertone.js', import.meta.url));

/** Ten short recordings of actors, named after the intended emotion: 16-bit mono WAV at 16 kHz. */
export const VOICES = fileURLToPath(new URL('../../../examples/voices/', import.meta.url));

/**
 * Small models with the names of the shipped ones, for tests that are not about the model: they load in milliseconds. They
 * know the example voices by heart, and nothing else.
 */
export const TEST_MODELS = fileURLToPath(new URL('../models/', import.meta.url));
