-- Signatures of requests that were taken, until none of them could count any more: `mark` is a digest of what may be
-- used once, `caller` whose it was.
CREATE TABLE seen (
  tenant TEXT NOT NULL,
  caller TEXT NOT NULL,
  mark BLOB NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (tenant, caller, mark)
) WITHOUT ROWID;
CREATE INDEX seen_expires ON seen (expires);
