-- Notices to callbacks: each from its birth until it is forgotten, under the id of its job. Only the first pending one
-- of each line (a task's callback) has a job; it hands the line on. `state`: 0 pending 1 parked 2 disabled 3 delivered.
-- `url` is empty where it is not known yet, and for a mailbox. `tries` counts from the last replay on.
CREATE TABLE delivery (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  callback TEXT NOT NULL,
  seq INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  caller TEXT NOT NULL,
  url TEXT NOT NULL,
  state INTEGER NOT NULL,
  born INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  replays INTEGER NOT NULL DEFAULT 0,
  tried INTEGER,
  answer TEXT
);
CREATE INDEX delivery_line ON delivery (task, callback, seq) WHERE state = 0;
CREATE INDEX delivery_of_task ON delivery (task, id);
CREATE INDEX delivery_of_tenant ON delivery (tenant, state, id);
CREATE INDEX delivery_of_caller ON delivery (tenant, caller, state, id);
CREATE INDEX delivery_to_url ON delivery (tenant, url, state, id);

-- Addresses that failed since they last took a notice, and those that are disabled, with the reason.
CREATE TABLE receiver (
  tenant TEXT NOT NULL,
  url TEXT NOT NULL,
  failing INTEGER,
  disabled INTEGER,
  reason TEXT,
  PRIMARY KEY (tenant, url)
) WITHOUT ROWID;

-- What was owed before: a job's payload was ["callback", number of the event].
INSERT INTO delivery (id, task, callback, seq, tenant, caller, url, state, born, answer)
SELECT job.id, job.task, json_extract(CAST(job.payload AS TEXT), '$[0]'),
  json_extract(CAST(job.payload AS TEXT), '$[1]'), task.tenant, task.caller, '', job.parked IS NOT NULL,
  task.state_at, job.parked
FROM job JOIN task ON task.number = job.task WHERE job.queue = 'callback';
DELETE FROM job WHERE queue = 'callback' AND (parked IS NOT NULL OR EXISTS (
  SELECT 1 FROM delivery AS mine JOIN delivery AS other USING (task, callback)
  WHERE mine.id = job.id AND other.state = 0 AND other.seq < mine.seq));

-- No job is set aside any more: what is not to be done now is no job.
DROP INDEX job_waiting;
DROP INDEX job_sleeping;
ALTER TABLE job DROP COLUMN parked;
CREATE INDEX job_waiting ON job (queue, rank, id) WHERE replica IS NULL AND run_at IS NULL;
CREATE INDEX job_sleeping ON job (run_at) WHERE replica IS NULL AND run_at IS NOT NULL;
