-- Asynch requests, the parts of their uploads, and the jobs that process them. Times are milliseconds since 1970.
-- The name a file had with its owner is not among the columns: nothing here needs it.
CREATE TABLE requests (
  id               TEXT PRIMARY KEY,
  owner            TEXT NOT NULL, -- id of the key that made it
  upload_id        TEXT NOT NULL,
  model            TEXT NOT NULL,
  interval_seconds INTEGER NOT NULL,
  part_count       INTEGER NOT NULL,
  state            TEXT NOT NULL,
  worker           TEXT, -- the lease under which it is being processed
  progress         REAL NOT NULL DEFAULT 0,
  result           TEXT, -- JSON, once completed
  problem          TEXT, -- JSON, once failed
  created_at       INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX requests_by_state ON requests (state, expires_at);

CREATE TABLE parts (
  request_id TEXT NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
  number     INTEGER NOT NULL,
  blob       TEXT NOT NULL, -- each arrival of a part is a blob of its own
  etag       TEXT NOT NULL, -- MD5 in hexadecimal
  bytes      INTEGER NOT NULL,
  PRIMARY KEY (request_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  request_id  TEXT PRIMARY KEY,
  added_at    INTEGER NOT NULL,
  deaths      INTEGER NOT NULL DEFAULT 0, -- workers lost over it
  lease       TEXT,                       -- who holds it; null while it waits
  lease_until INTEGER
) STRICT;
