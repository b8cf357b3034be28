-- From version 1.0 to 2.0: the row of a request is also its place in the queue, so that state, lease and failed attempts
-- change together. Results have a table of their own, which polling never reads.

ALTER TABLE keys ADD COLUMN expires_at INTEGER;

CREATE TABLE results (
  request_id TEXT PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE,
  result     TEXT, -- JSON, when it is completed
  failure    TEXT  -- JSON, when it is failed
) STRICT;

INSERT INTO results (request_id, result, failure)
  SELECT id, result, problem FROM requests WHERE state IN ('completed', 'failed');

-- States are those of the contract, and `deleted`. Of a request that is expired or deleted only id, owner and times stay.
ALTER TABLE requests DROP COLUMN result;
ALTER TABLE requests DROP COLUMN problem;
ALTER TABLE requests RENAME COLUMN worker TO lease;
ALTER TABLE requests ADD COLUMN lease_until INTEGER;
ALTER TABLE requests ADD COLUMN failed_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN queued_at INTEGER;
ALTER TABLE requests ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0; -- the sum of its parts

UPDATE requests SET
  queued_at = jobs.added_at,
  lease_until = iif(state = 'processing', jobs.lease_until, NULL),
  lease = iif(state = 'processing', jobs.lease, NULL),
  failed_attempts = jobs.deaths
FROM jobs WHERE jobs.request_id = requests.id AND state IN ('queued', 'processing');

-- What version 1.0 left to its sweep: a lease that was given back, a request whose job was never written.
UPDATE requests SET state = 'queued', lease = NULL, progress = 0 WHERE state = 'processing' AND lease_until IS NULL;
UPDATE requests SET queued_at = created_at WHERE state = 'queued' AND queued_at IS NULL;
DROP TABLE jobs;

DELETE FROM parts WHERE request_id IN (SELECT id FROM requests WHERE state = 'expired');
UPDATE requests SET upload_id = '', model = '', interval_seconds = 0, part_count = 0, progress = 0 WHERE state = 'expired';
UPDATE requests SET
  stored_bytes = (SELECT coalesce(sum(bytes), 0) FROM parts WHERE request_id = id);

CREATE INDEX requests_waiting ON requests (queued_at, id) WHERE state IN ('queued', 'processing');
CREATE INDEX requests_stored ON requests (owner, stored_bytes) WHERE stored_bytes > 0;

-- What `/readyz` writes to, to see that writing works.
CREATE TABLE write_check (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at INTEGER NOT NULL
) STRICT;
