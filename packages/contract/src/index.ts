// No run-time import of TypeBox may be reachable from here: clients bundle this file.
export * from './asynch.ts';
export * from './emotions.ts';
export * from './errors.ts';
export * from './etags.ts';
export * from './labels.ts';
export * from './limits.ts';
export * from './models.ts';
export * from './paths.ts';
export type * from './schemas/types.ts';
export * from './states.ts';
export * from './streaming.ts';
export * from './timeline-export.ts';
export * from './timestamps.ts';
