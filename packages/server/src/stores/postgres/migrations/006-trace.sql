-- Which call created a request, for the log lines of the processes that handle it later.

ALTER TABLE requests ADD COLUMN trace TEXT; -- JSON
