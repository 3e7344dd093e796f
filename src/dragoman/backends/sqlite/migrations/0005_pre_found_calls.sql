-- What calls are found by, beside whose they are. Calls of before have none of it.
ALTER TABLE task ADD COLUMN skill TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN dialect TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN trace TEXT NOT NULL DEFAULT '';
CREATE INDEX task_trace ON task (trace) WHERE trace <> '';
