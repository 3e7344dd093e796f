-- How long the last completed calls of each skill took: up to 100 numbers of milliseconds, oldest first, as one value.
CREATE TABLE duration (
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  skill TEXT NOT NULL,
  last_ms BLOB NOT NULL,
  PRIMARY KEY (tenant, agent, skill)
) WITHOUT ROWID;
