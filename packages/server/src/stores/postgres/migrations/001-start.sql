-- The same tables as in SQLite's `undertone.db`. Times are milliseconds since 1970, by the clock of the database.
CREATE TABLE keys (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  hash         BYTEA NOT NULL, -- SHA-256; the key itself is shown once, when it is made
  created_at   BIGINT NOT NULL,
  last_used_at BIGINT,
  expires_at   BIGINT,
  revoked_at   BIGINT
);

-- The row of a request is also its place in the queue. Of one that is expired or deleted only id, owner and times stay.
CREATE TABLE requests (
  id               TEXT COLLATE "C" PRIMARY KEY,
  owner            TEXT NOT NULL, -- id of the key that made it
  upload_id        TEXT NOT NULL,
  model            TEXT NOT NULL,
  interval_seconds INTEGER NOT NULL,
  part_count       INTEGER NOT NULL,
  state            TEXT NOT NULL,
  progress         DOUBLE PRECISION NOT NULL DEFAULT 0,
  lease            TEXT,
  lease_until      BIGINT,
  failed_attempts  INTEGER NOT NULL DEFAULT 0,
  queued_at        BIGINT,
  stored_bytes     BIGINT NOT NULL DEFAULT 0, -- the sum of its parts
  created_at       BIGINT NOT NULL,
  expires_at       BIGINT NOT NULL
);

-- However many requests are past, a claim looks only at those that wait or are being processed.
CREATE INDEX requests_waiting ON requests (queued_at, id) WHERE state IN ('queued', 'processing');
CREATE INDEX requests_by_state ON requests (state, expires_at);
CREATE INDEX requests_stored ON requests (owner) WHERE stored_bytes > 0;

CREATE TABLE parts (
  request_id TEXT COLLATE "C" NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
  number     INTEGER NOT NULL,
  blob       TEXT NOT NULL,
  etag       TEXT NOT NULL,
  bytes      BIGINT NOT NULL,
  PRIMARY KEY (request_id, number)
);

-- Apart, so that polling never reads it.
CREATE TABLE results (
  request_id TEXT COLLATE "C" PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE,
  result     TEXT, -- JSON, when it is completed
  failure    TEXT  -- JSON, when it is failed
);

-- What `/readyz` writes to, to see that writing works.
CREATE TABLE write_check (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at BIGINT NOT NULL
);

-- Token buckets of all processes together. Not worth a log: a crash of the database only fills them up again.
CREATE UNLOGGED TABLE rate_limits (
  name    TEXT PRIMARY KEY,
  tokens  DOUBLE PRECISION NOT NULL,
  allowed BOOLEAN NOT NULL, -- the last one that asked
  at      BIGINT NOT NULL
);

-- Work that one process does for all of them now and then, and when it was last begun.
CREATE TABLE periodic_tasks (
  name     TEXT PRIMARY KEY,
  begun_at BIGINT NOT NULL
);

-- What all processes sign with, where SERVICE_SECRET is not given.
CREATE TABLE secrets (
  name  TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);
