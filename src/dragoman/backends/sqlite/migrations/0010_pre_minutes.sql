-- What calls came to, minute by minute (since 1970), and health checks hour by hour, with no skill.
-- b0 to b23 count durations: under 1 ms, 1 ms, 2 to 3 ms, 4 to 7 ms and so on, each twice as wide.
CREATE TABLE minute (
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  minute INTEGER NOT NULL,
  skill TEXT NOT NULL,
  status TEXT NOT NULL,
  count INTEGER NOT NULL,
  sum_ms INTEGER NOT NULL,
  b0 INTEGER NOT NULL, b1 INTEGER NOT NULL, b2 INTEGER NOT NULL, b3 INTEGER NOT NULL, b4 INTEGER NOT NULL,
  b5 INTEGER NOT NULL, b6 INTEGER NOT NULL, b7 INTEGER NOT NULL, b8 INTEGER NOT NULL, b9 INTEGER NOT NULL,
  b10 INTEGER NOT NULL, b11 INTEGER NOT NULL, b12 INTEGER NOT NULL, b13 INTEGER NOT NULL, b14 INTEGER NOT NULL,
  b15 INTEGER NOT NULL, b16 INTEGER NOT NULL, b17 INTEGER NOT NULL, b18 INTEGER NOT NULL, b19 INTEGER NOT NULL,
  b20 INTEGER NOT NULL, b21 INTEGER NOT NULL, b22 INTEGER NOT NULL, b23 INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent, minute, skill, status)
) WITHOUT ROWID;
CREATE INDEX minute_at ON minute (minute, tenant);
