export * from './clips.ts';
export * from './common.ts';
export * from './models.ts';
export * from './problem.ts';
export * from './recordings.ts';
export * from './streams.ts';
export * from './tokens.ts';
