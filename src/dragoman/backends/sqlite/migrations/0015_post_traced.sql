-- Calls by their trace, in runs of 2,048 by their numbers. Trace ids come in no order: an index of all calls has a page
-- of its own changed for each; a run is written once, in its own order. Runs that are not written yet are in memory.
CREATE TABLE traced (
  run INTEGER NOT NULL,
  trace TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (run, trace, number DESC)
) WITHOUT ROWID;
INSERT INTO traced (run, trace, number) SELECT number >> 11, trace, number FROM task WHERE trace <> '' ORDER BY 1, 2, 3 DESC;
DROP INDEX task_trace;
