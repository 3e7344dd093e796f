-- To whom a call went, for lists of one agent's calls.
ALTER TABLE task ADD COLUMN agent TEXT NOT NULL DEFAULT '';

-- Messages that wait for a caller without an endpoint, each until the caller has told that it arrived.
CREATE TABLE mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  box TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX mail_box ON mail (tenant, box, id);
