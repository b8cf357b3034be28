export * from './asynch.ts';
export * from './common.ts';
export * from './discrete.ts';
export * from './models.ts';
export * from './problem.ts';
export * from './streaming.ts';
