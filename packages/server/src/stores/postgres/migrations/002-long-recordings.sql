-- From version 2.0 to 2.1: channels analysed separately, labels, lists, idempotency keys, and webhooks.

ALTER TABLE requests ADD COLUMN channels TEXT NOT NULL DEFAULT 'mix';
ALTER TABLE requests ADD COLUMN label TEXT;
ALTER TABLE requests ADD COLUMN webhook_url TEXT;
ALTER TABLE requests ADD COLUMN duration_seconds DOUBLE PRECISION; -- known when it is completed
ALTER TABLE requests ADD COLUMN idempotency_key TEXT;  -- SHA-256 of what the caller sent
ALTER TABLE requests ADD COLUMN idempotency_query TEXT; -- SHA-256 of method and query, which must be the same again

CREATE INDEX requests_of_owner ON requests (owner, created_at, id);
CREATE UNIQUE INDEX requests_idempotency ON requests (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Webhooks that are still to be delivered. What they tell is in their request.
CREATE TABLE webhooks (
  id         TEXT PRIMARY KEY, -- the same with every attempt
  request_id TEXT COLLATE "C" NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  attempts   INTEGER NOT NULL DEFAULT 0, -- that failed
  due_at     BIGINT NOT NULL -- while one is being sent: when it would be sent again if nothing were heard of it
);

CREATE INDEX webhooks_due ON webhooks (due_at, id);
CREATE INDEX webhooks_of_request ON webhooks (request_id);
