// What the command line does with the stores that several processes share. Loads PostgreSQL and S3, so import it late.
export { type Moved, moveToPostgres } from './move-to-postgres.ts';
export { inspectPostgres, type PostgresInspection } from './postgres-inspection.ts';
export { migratePostgres } from './postgres-migrations.ts';
export { inspectS3, type S3Inspection } from './s3-inspection.ts';
