// Clients bundle this file: it must not import TypeBox at run time.
export * from './emotions.ts';
export * from './errors.ts';
export * from './labelled.ts';
export * from './labels.ts';
export * from './limits.ts';
export * from './paths.ts';
export * from './recordings.ts';
export type * from './schemas/types.ts';
export * from './scores.ts';
export * from './streams.ts';
export * from './timeline-export.ts';
export * from './timestamps.ts';
export * from './tokens.ts';
