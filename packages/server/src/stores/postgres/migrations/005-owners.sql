-- Keys have owners and limits. Until now each key was its own owner, under its id: existing requests keep theirs.
ALTER TABLE keys ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN limits TEXT NOT NULL DEFAULT '{}'; -- JSON: rate, streams
UPDATE keys SET owner = id;
CREATE INDEX keys_of_owner ON keys (owner);

-- Only owners with limits of their own.
CREATE TABLE owners (
  name   TEXT PRIMARY KEY,
  limits TEXT NOT NULL -- JSON: queued, open, storage, audio_hours
);

-- Classified audio by owner and hour, for the last 24 hours.
CREATE TABLE audio_use (
  owner   TEXT NOT NULL,
  hour    BIGINT NOT NULL, -- since 1970
  seconds DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (owner, hour)
);

-- Counts an owner's open uploads and queued requests, however many finished ones there are.
CREATE INDEX requests_open ON requests (owner, state) WHERE state IN ('uploading', 'queued');

-- Changes of keys that a server has still to write to its audit log.
CREATE TABLE key_events (
  id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event TEXT NOT NULL -- JSON
);
