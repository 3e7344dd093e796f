-- Calls that were removed when their time was over: the numbers from `first` to `last`, and the row of the audit that
-- says so of each. Numbers between them that no call had may be among them.
CREATE TABLE removed (
  first INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  covered_by INTEGER NOT NULL
);
CREATE INDEX removed_by ON removed (covered_by);

-- Removed calls that had more events than go at once: the rest of them is still there.
CREATE TABLE removed_rest (
  number INTEGER PRIMARY KEY
);

-- One row: the highest numbers of calls and of notices that were removed, so that none of them is given again.
CREATE TABLE removed_last (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  delivery INTEGER NOT NULL
);

-- One row, once the oldest rows of the audit are removed: the last of them, its hash, the highest number of a call that
-- they covered, and the row of the audit that says so.
CREATE TABLE audit_base (
  id INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  hash BLOB NOT NULL,
  calls INTEGER NOT NULL,
  noted_by INTEGER NOT NULL
);

-- When a message came; those of before count as new.
ALTER TABLE mail ADD COLUMN at INTEGER;
UPDATE mail SET at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000;

-- Names that callers gave their tasks do not expire: they go with the task. Other keys do by themselves.
CREATE INDEX idem_alias ON idem (task) WHERE scope = 'alias';
