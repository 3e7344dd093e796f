-- Who works at one queue asks only for the jobs of that one that sleep.
DROP INDEX job_sleeping;
CREATE INDEX job_sleeping ON job (queue, run_at) WHERE replica IS NULL AND run_at IS NOT NULL;
