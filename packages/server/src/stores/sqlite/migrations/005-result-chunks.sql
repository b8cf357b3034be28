-- Large results in chunks, so that no call writes or reads more than a small part of one.

ALTER TABLE results ADD COLUMN chunks TEXT; -- the lease under which its chunks were written, when it has any

CREATE TABLE result_chunks (
  name       TEXT PRIMARY KEY, -- LEASE/FORM/NUMBER: an attempt never mixes its chunks with those of another
  request_id TEXT NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
  text       TEXT NOT NULL
) STRICT;

CREATE INDEX result_chunks_of_request ON result_chunks (request_id);
