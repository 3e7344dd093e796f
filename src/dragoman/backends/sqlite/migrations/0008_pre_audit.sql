-- What was done and written, in a chain: `hash` is SHA-256 of the hash before and the row. `covers` holds the number (8
-- bytes) and digest (32 bytes) of each task that a commit wrote; `digest` is SHA-256 of it.
CREATE TABLE audit (
  n INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  principal TEXT NOT NULL,
  key TEXT,
  action TEXT NOT NULL,
  object TEXT NOT NULL,
  outcome TEXT NOT NULL,
  request TEXT,
  digest BLOB,
  covers BLOB,
  hash BLOB NOT NULL
);
-- Acts are few among the commits of calls.
CREATE INDEX audit_act ON audit (n) WHERE covers IS NULL;
CREATE INDEX audit_act_of ON audit (tenant, n) WHERE covers IS NULL;

-- The last act: what comes after it covers calls, whose rows tell when theirs is missing.
CREATE TABLE audit_tip (
  id INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  hash BLOB NOT NULL
);

-- Heads of the chain with the hub's signature.
CREATE TABLE audit_head (
  n INTEGER PRIMARY KEY,
  token TEXT NOT NULL
);

-- What the audit knows of a task: the digest of its row and events, and the row of the audit that covers it. `sums` is
-- what the digest of a task with events is made of: SHA-256 of its document, and the hash of its events. Calls of before
-- have none of it. `forgotten` is when what was written in the call was removed.
ALTER TABLE task ADD COLUMN digest BLOB;
ALTER TABLE task ADD COLUMN sums BLOB;
ALTER TABLE task ADD COLUMN covered_by INTEGER;
ALTER TABLE task ADD COLUMN forgotten INTEGER;
