// What the command line does with the stores that several processes share. Loads PostgreSQL and S3, so import it late.

export { inspectPostgres, type PostgresInspection } from './postgres/inspect.ts';
export { migratePostgres } from './postgres/migrate.ts';
export { type Moved, moveToPostgres } from './postgres/move.ts';
export { inspectS3, type S3Inspection } from './s3/inspect.ts';
