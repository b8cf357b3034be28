-- From version 2.1 to 2.2: a request that failed waits before it is tried again, and owners take turns in the queue.

ALTER TABLE requests ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0; -- while it is queued: no worker claims it earlier
ALTER TABLE requests ADD COLUMN postponed INTEGER NOT NULL DEFAULT 0; -- how often it was requeued without a failed attempt
ALTER TABLE requests ADD COLUMN turn INTEGER NOT NULL DEFAULT 0; -- its place in the queue: the n-th requests of all owners have the same

DROP INDEX requests_waiting;
CREATE INDEX requests_waiting ON requests (turn, queued_at, id) WHERE state IN ('queued', 'processing');
CREATE INDEX requests_turns ON requests (owner, turn) WHERE state IN ('queued', 'processing');
