-- API keys. Only the SHA-256 of a key is kept; the key itself is shown once, when it is made.
CREATE TABLE keys (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  hash         BLOB NOT NULL,
  created_at   INTEGER NOT NULL, -- milliseconds since 1970, as all times here
  last_used_at INTEGER,
  revoked_at   INTEGER
) STRICT;
