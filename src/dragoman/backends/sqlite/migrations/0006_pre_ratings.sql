-- What callers said of calls: one word each, the last one.
CREATE TABLE rating (
  task TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  stars INTEGER NOT NULL,
  comment TEXT,
  rated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rating_agent ON rating (tenant, agent, rated_at DESC, stars);
