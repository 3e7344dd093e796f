-- Calls. A quick call is one row: its head, and in `log` its opening and all its events.
-- Any other has `doc`, the task as it stood at some event, and its events as rows; once it has ended, `doc` is the
-- whole of it. `state`: 0 submitted 1 working 2 input-required 3 auth-required, then the final ones
-- 4 completed 5 failed 6 canceled 7 rejected. Times are microseconds since 1970.
CREATE TABLE task (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  tenant TEXT NOT NULL,
  caller TEXT NOT NULL,
  context TEXT NOT NULL,
  state INTEGER NOT NULL,
  state_at INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  doc BLOB,
  log BLOB
);
CREATE UNIQUE INDEX task_id ON task (id);
CREATE INDEX task_listed ON task (tenant, caller, state_at, number, state);
CREATE INDEX task_context ON task (tenant, context, state_at, number);
-- Completed calls are most of all: they are found in task_listed, the few others of one state here.
CREATE INDEX task_not_completed ON task (tenant, caller, state, state_at, number) WHERE state <> 4;

-- The key is the task's number * 2^20 + the event's number.
CREATE TABLE event (
  key INTEGER PRIMARY KEY,
  body BLOB NOT NULL
);

-- The job of a call has its task's number; all others have numbers from 2^48 on.
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  queue TEXT NOT NULL,
  rank REAL NOT NULL,
  run_at INTEGER,
  attempt INTEGER NOT NULL,
  payload BLOB NOT NULL,
  replica TEXT,
  epoch INTEGER,
  parked TEXT
);
CREATE INDEX job_waiting ON job (queue, rank, id) WHERE replica IS NULL AND parked IS NULL AND run_at IS NULL;
CREATE INDEX job_sleeping ON job (run_at) WHERE replica IS NULL AND parked IS NULL AND run_at IS NOT NULL;
CREATE INDEX job_owned ON job (replica, epoch) WHERE replica IS NOT NULL;

CREATE TABLE replica (
  id TEXT PRIMARY KEY,
  epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE idem (
  tenant TEXT NOT NULL,
  principal TEXT NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  task TEXT NOT NULL,
  digest BLOB NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal, scope, key)
) WITHOUT ROWID;
CREATE INDEX idem_expires ON idem (expires);

CREATE TABLE agent (
  number INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  uuid TEXT NOT NULL,
  status TEXT NOT NULL,
  score REAL NOT NULL,
  p95_ms INTEGER NOT NULL,
  availability REAL NOT NULL,
  doc BLOB NOT NULL
);
CREATE UNIQUE INDEX agent_id ON agent (tenant, id);
CREATE UNIQUE INDEX agent_uuid ON agent (uuid);

-- Ids and aliases share one namespace per tenant. Rows are never deleted, so no name changes hands.
CREATE TABLE agent_name (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  agent INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE card_version (
  number INTEGER PRIMARY KEY,
  agent INTEGER NOT NULL,
  version TEXT NOT NULL,
  card BLOB NOT NULL
);
CREATE UNIQUE INDEX card_version_pin ON card_version (agent, version);
CREATE INDEX card_version_order ON card_version (agent, number);

-- What agents are found by, in the order they are shown. `shelf`: which searches see the row (facets.py).
CREATE TABLE agent_facet (
  tenant TEXT NOT NULL,
  shelf INTEGER NOT NULL,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  score REAL NOT NULL,
  id TEXT NOT NULL,
  agent INTEGER NOT NULL,
  PRIMARY KEY (tenant, shelf, kind, value, score DESC, id)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE agent_text USING fts5 (place, words, tokenize = 'porter unicode61');

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  created INTEGER NOT NULL,
  revoked INTEGER,
  used INTEGER,
  doc BLOB NOT NULL
);
CREATE INDEX api_key_tenant ON api_key (tenant, created, id);
CREATE INDEX api_key_created ON api_key (created, id);

CREATE TABLE sealed (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
);

-- One row, written when a commit is tried that no call needed.
CREATE TABLE pulse (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
);
