// What both entries of the package share.
export * from './errors.ts';
export type * from './types.ts';
