-- What calls used up, by the day on which they ended (days since 1970, UTC). Money is whole nano-dollars.
CREATE TABLE usage_day (
  day INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  caller TEXT NOT NULL,
  target TEXT NOT NULL,
  skill TEXT NOT NULL,
  model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  PRIMARY KEY (day, tenant, caller, target, skill, model)
) WITHOUT ROWID;

-- One row: up to which row of the audit calls are counted there, and when that was written.
CREATE TABLE usage_mark (
  id INTEGER PRIMARY KEY,
  audited INTEGER NOT NULL,
  at INTEGER NOT NULL
);

-- The call that a call belongs to. Calls of before are not found by it.
ALTER TABLE task ADD COLUMN parent TEXT;
CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL;
