-- When the sweep erases the blobs of a request, so that it does not have to list all blobs.

ALTER TABLE requests ADD COLUMN urls_until BIGINT NOT NULL DEFAULT 0; -- parts may still arrive, through upload URLs that cannot be revoked
ALTER TABLE requests ADD COLUMN blobs_due BIGINT DEFAULT 0; -- the sweep erases its blobs then, if nobody needs them; null when there can be none any more

-- Of those that are expired or deleted already, the daily pass erases what is left.
UPDATE requests SET urls_until = expires_at, blobs_due = expires_at;
UPDATE requests SET blobs_due = NULL WHERE state IN ('expired', 'deleted');

CREATE INDEX requests_blobs_due ON requests (blobs_due, id) WHERE blobs_due IS NOT NULL;
