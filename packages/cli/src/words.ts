/** Where there is too little speech, any emotion would be made up. */
export const NO_SPEECH = 'no speech';

/** Where the confidence is under the advised one. */
export const UNSURE = 'unsure';
