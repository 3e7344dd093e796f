-- Every statement of the SQLite store. A name, what it is for, the statement. Parameters are always bound.

-- name: create_schema_version
-- Where the applied migrations stand.
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL);

-- name: schema_version
-- The last migration applied; NULL in a new file.
SELECT max(version) FROM schema_version;

-- name: add_schema_version
-- Note a migration.
INSERT INTO schema_version (version, name, applied_at) VALUES (?1, ?2, ?3);

-- name: last_task_number
-- Where the numbers of tasks go on after a start.
SELECT max(number) FROM task;

-- name: last_job_id
-- Where the numbers of jobs that are not calls go on after a start.
SELECT max(id) FROM job;

-- name: last_delivery_id
-- The same for those whose job is done: their numbers are not given again.
SELECT max(id) FROM delivery;

-- name: pulse
-- A write of no meaning, to see that writing works.
INSERT INTO pulse (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET at = excluded.at;

-- name: add_quick_task
-- A call that ended while its opening was held: one row.
INSERT INTO task (
  number, id, tenant, caller, context, state, state_at, last_seq, log, agent, skill, dialect, trace, parent, digest,
  covered_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: add_task
-- The opening of a call.
INSERT INTO task (
  number, id, tenant, caller, context, state, state_at, last_seq, doc, agent, skill, dialect, trace, parent, digest,
  sums, covered_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);

-- name: add_event
-- One event under its key.
INSERT INTO event (key, body) VALUES (?1, ?2);

-- name: grow_task
-- A step that leaves the state: no index is touched. Only from the event number it expects, never after the end.
UPDATE task SET last_seq = ?3, doc = coalesce(?4, doc)
WHERE id = ?1 AND last_seq = ?2 AND state < 4
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace, parent;

-- name: move_task
-- A step that may change the state. Only from the event number it expects, never after the end.
UPDATE task SET last_seq = ?3, doc = coalesce(?4, doc), state = ?5,
  state_at = CASE state WHEN ?5 THEN state_at ELSE ?6 END
WHERE id = ?1 AND last_seq = ?2 AND state < 4
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace, parent;

-- name: note_task
-- A change that is no event, of the document alone: after the end, too. What was forgotten does not come back with it.
UPDATE task SET doc = ?3 WHERE id = ?1 AND last_seq = ?2 AND (forgotten IS NULL OR ?4)
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace, parent;

-- name: task_anyone
-- A task whoever owns it: for the loser of a race, who had it already.
SELECT number, doc, log FROM task WHERE id = ?1;

-- name: task_of_scope
-- The one way to a task for its callers: tenant and principal are part of the question.
SELECT number, doc, log FROM task WHERE id = ?1 AND tenant = ?2 AND (?3 IS NULL OR caller = ?3);

-- name: task_by_number
-- A task that a listing found.
SELECT number, doc, log FROM task WHERE number = ?1;

-- name: events_between
-- Events of one task: keys above the first, up to the second.
SELECT key, body FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3;

-- name: tasks_of_caller
-- A caller's tasks, newest status first, after a position.
SELECT state_at, number FROM task
WHERE tenant = :tenant AND caller = :caller AND state_at <= :at AND state_at >= :since
  AND (state_at < :at OR number < :number) AND (:state IS NULL OR state = :state)
  AND (:agent IS NULL OR agent = :agent) AND (:skill IS NULL OR skill = :skill)
  AND (:dialect IS NULL OR dialect = :dialect)
ORDER BY state_at DESC, number DESC LIMIT :limit;

-- name: tasks_not_completed
-- The same for one state other than completed.
SELECT state_at, number FROM task
WHERE tenant = :tenant AND caller = :caller AND state = :state AND state <> 4
  AND state_at <= :at AND state_at >= :since AND (state_at < :at OR number < :number)
  AND (:agent IS NULL OR agent = :agent) AND (:skill IS NULL OR skill = :skill)
  AND (:dialect IS NULL OR dialect = :dialect)
ORDER BY state_at DESC, number DESC LIMIT :limit;

-- name: tasks_of_context
-- The same for one conversation.
SELECT state_at, number FROM task
WHERE tenant = :tenant AND context = :context AND state_at <= :at AND state_at >= :since
  AND (state_at < :at OR number < :number) AND (:state IS NULL OR state = :state)
  AND (:caller IS NULL OR caller = :caller) AND (:agent IS NULL OR agent = :agent)
  AND (:skill IS NULL OR skill = :skill) AND (:dialect IS NULL OR dialect = :dialect)
ORDER BY state_at DESC, number DESC LIMIT :limit;

-- name: tasks_of_trace
-- The newest of one trace that the runs of the index have, run by run.
WITH RECURSIVE at (run) AS (
  SELECT max(run) FROM traced UNION ALL SELECT run - 1 FROM at WHERE run > (SELECT min(run) FROM traced))
SELECT task.state_at, task.number FROM at
CROSS JOIN traced ON traced.run = at.run AND traced.trace = :trace
CROSS JOIN task ON task.number = traced.number
WHERE tenant = :tenant AND state_at >= :since
  AND (:caller IS NULL OR caller = :caller) AND (:context IS NULL OR context = :context)
  AND (:state IS NULL OR state = :state) AND (:agent IS NULL OR agent = :agent)
  AND (:skill IS NULL OR skill = :skill) AND (:dialect IS NULL OR dialect = :dialect)
  AND (:prefix IS NULL OR (id >= :prefix AND id < :beyond))
LIMIT :limit;

-- name: task_of_trace
-- The same for one call that no run has yet.
SELECT state_at, number FROM task
WHERE number = :number AND trace = :trace AND tenant = :tenant AND state_at >= :since
  AND (:caller IS NULL OR caller = :caller) AND (:context IS NULL OR context = :context)
  AND (:state IS NULL OR state = :state) AND (:agent IS NULL OR agent = :agent)
  AND (:skill IS NULL OR skill = :skill) AND (:dialect IS NULL OR dialect = :dialect)
  AND (:prefix IS NULL OR (id >= :prefix AND id < :beyond));

-- name: add_traced
-- A call in the index by trace.
INSERT OR IGNORE INTO traced (run, trace, number) VALUES (?1, ?2, ?3);

-- name: last_run
-- The last run of that index which is written.
SELECT max(run) FROM traced;

-- name: untraced_calls
-- Calls from one number to another, whose runs are not written.
SELECT number, trace FROM task WHERE number >= ?1 AND number <= ?2 AND trace <> '' ORDER BY number;

-- name: remove_traced
-- A call that is about to be removed is found by its trace no longer.
DELETE FROM traced WHERE run = ?1 >> 11 AND trace = (SELECT trace FROM task WHERE number = ?1) AND number = ?1;

-- name: tasks_begun_so
-- Tasks whose ids begin so, among the last of all that do.
SELECT state_at, number FROM (
  SELECT state_at, number, tenant, caller, context, state, agent, skill, dialect FROM task
  WHERE id >= :prefix AND id < :beyond ORDER BY id DESC LIMIT :examined)
WHERE tenant = :tenant AND state_at >= :since
  AND (:caller IS NULL OR caller = :caller) AND (:context IS NULL OR context = :context)
  AND (:state IS NULL OR state = :state) AND (:agent IS NULL OR agent = :agent)
  AND (:skill IS NULL OR skill = :skill) AND (:dialect IS NULL OR dialect = :dialect)
LIMIT :limit;

-- name: last_turn
-- The last task of one conversation that one agent had from one caller.
SELECT number, doc, log FROM task
WHERE tenant = ?1 AND context = ?2 AND caller = ?3 AND agent = ?4 ORDER BY state_at DESC, number DESC LIMIT 1;

-- name: context_owner
-- Who was the first to name a conversation so.
SELECT caller FROM task WHERE number = (SELECT min(number) FROM task WHERE tenant = ?1 AND context = ?2);

-- name: next_caller
-- The callers of a tenant, one after the other.
SELECT caller FROM task WHERE tenant = ?1 AND caller > ?2 ORDER BY caller LIMIT 1;

-- name: claim_key
-- Take a key for a task, if it is free or has expired; one row if it is ours now.
INSERT INTO idem (tenant, principal, scope, key, task, digest, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tenant, principal, scope, key)
DO UPDATE SET task = excluded.task, digest = excluded.digest, expires = excluded.expires WHERE idem.expires <= ?8
RETURNING task;

-- name: note_key
-- Keep a request id beside its task, unless an older one still holds it.
INSERT INTO idem (tenant, principal, scope, key, task, digest, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tenant, principal, scope, key)
DO UPDATE SET task = excluded.task, digest = excluded.digest, expires = excluded.expires WHERE idem.expires <= ?8;

-- name: find_key_task
-- The task behind a key that has not expired.
SELECT task, digest FROM idem WHERE tenant = ?1 AND principal = ?2 AND scope = ?3 AND key = ?4 AND expires > ?5;

-- name: request_ids
-- Request ids that have not expired, in the order of the table.
SELECT tenant, principal, key, expires FROM idem
WHERE (tenant, principal, scope, key) > (?1, ?2, 'request', ?3) AND +scope = 'request' AND expires > ?4
ORDER BY tenant, principal, scope, key LIMIT ?5;

-- name: add_job
-- A job; its owner counts only in the replica's present epoch. Born owned, it is in its first attempt.
INSERT INTO job (id, task, queue, rank, run_at, payload, replica, epoch, attempt)
VALUES (?1, ?2, ?3, ?4, ?5, ?6,
  (SELECT id FROM replica WHERE id = ?7 AND epoch = ?8), (SELECT epoch FROM replica WHERE id = ?7 AND epoch = ?8),
  (SELECT count(*) FROM replica WHERE id = ?7 AND epoch = ?8));

-- name: end_call_job
-- The call has ended, so has its job.
DELETE FROM job WHERE id = ?1;

-- name: next_epoch
-- A replica begins anew.
INSERT INTO replica (id, epoch) VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch;

-- name: release_jobs
-- What earlier lives of a replica held waits again.
UPDATE job SET replica = NULL, epoch = NULL WHERE replica = ?1 AND epoch < ?2;

-- name: epoch_of
-- The present epoch of a replica.
SELECT epoch FROM replica WHERE id = ?1;

-- name: wake_jobs
-- Sleeping jobs of one queue whose time has come wait again.
UPDATE job SET run_at = NULL WHERE id IN (
  SELECT id FROM job WHERE queue = ?1 AND run_at <= ?2 AND run_at IS NOT NULL AND replica IS NULL
  ORDER BY run_at LIMIT 1000);

-- name: next_due
-- When the next sleeping job of one queue falls due.
SELECT run_at FROM job WHERE queue = ?1 AND run_at IS NOT NULL AND replica IS NULL ORDER BY run_at LIMIT 1;

-- name: waiting_jobs
-- The first jobs of one queue that nobody holds.
SELECT rank, id FROM job WHERE queue = ?1 AND replica IS NULL AND run_at IS NULL
ORDER BY rank, id LIMIT ?2;

-- name: claim_job
-- Take one job.
UPDATE job SET replica = ?2, epoch = ?3, attempt = attempt + 1 WHERE id = ?1 AND replica IS NULL
RETURNING id, queue, (SELECT tenant FROM task WHERE task.number = job.task),
          (SELECT task.id FROM task WHERE task.number = job.task), attempt, payload;

-- name: finish_job
-- Done; only for the owner and attempt that hold it.
DELETE FROM job WHERE id = ?1 AND replica = ?2 AND epoch = ?3 AND attempt = ?4 RETURNING id;

-- name: retry_job
-- Later; only for the owner and attempt that hold it.
UPDATE job SET replica = NULL, epoch = NULL, run_at = ?5
WHERE id = ?1 AND replica = ?2 AND epoch = ?3 AND attempt = ?4 RETURNING id;

-- name: drop_job
-- Nobody has to do it any more.
DELETE FROM job WHERE id = ?1;

-- name: hasten_job
-- A sleeping job is due.
UPDATE job SET run_at = NULL WHERE id = ?1 AND replica IS NULL;

-- name: add_delivery
-- A notice is born, pending.
INSERT INTO delivery (id, task, callback, seq, tenant, caller, url, state, born)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8);

-- name: first_in_line
-- Whose turn it is in a line.
SELECT id FROM delivery WHERE task = ?1 AND callback = ?2 AND state = 0 ORDER BY seq LIMIT 1;

-- name: jobs_of_line
-- The jobs of a line, and whether somebody holds them.
SELECT job.id, job.replica IS NOT NULL FROM delivery CROSS JOIN job ON job.id = delivery.id
WHERE delivery.task = ?1 AND delivery.callback = ?2 AND delivery.state = 0;

-- name: pending_delivery
-- What a job is to deliver.
SELECT callback, seq, tries, replays FROM delivery WHERE id = ?1 AND state = 0;

-- name: attempt_delivery
-- What a notice has come to.
UPDATE delivery SET state = ?2, url = ?3, tries = tries + ?4, tried = coalesce(?5, tried), answer = ?6
WHERE id = ?1 RETURNING task, callback, tenant, replays > 0;

-- name: drop_delivery
-- There is nothing to tell any more.
DELETE FROM delivery WHERE id = ?1 RETURNING task, callback;

-- name: disable_delivery
-- Its address is disabled.
UPDATE delivery SET state = 2 WHERE id = ?1;

-- name: trim_delivered
-- Of those that arrived only the newest stay.
DELETE FROM delivery WHERE id IN (
  SELECT id FROM delivery WHERE tenant = ?1 AND state = 3 ORDER BY id DESC LIMIT 100 OFFSET ?2);

-- name: replay_delivery
-- From the beginning, once more.
UPDATE delivery SET state = 0, tries = 0, replays = replays + 1 WHERE id = ?1;

-- name: delivery_of_scope
-- One delivery: tenant and caller are part of the question.
SELECT d.id, task.id, d.caller, d.seq, d.url, d.state, d.born, d.tries, d.replays, d.tried, d.answer,
  job.run_at, r.disabled IS NOT NULL, r.reason, d.task, d.callback
FROM delivery AS d CROSS JOIN task ON task.number = d.task LEFT JOIN job ON job.id = d.id
  LEFT JOIN receiver AS r ON r.tenant = d.tenant AND r.url = d.url
WHERE d.id = ?1 AND d.tenant = ?2 AND (?3 IS NULL OR d.caller = ?3);

-- name: deliveries_of_tenant
-- Deliveries in one state, newest first.
SELECT id FROM delivery WHERE tenant = :tenant AND state = :state AND id < :before AND born >= :since
ORDER BY id DESC LIMIT :limit;

-- name: deliveries_of_caller
-- The same of one caller's calls.
SELECT id FROM delivery WHERE tenant = :tenant AND caller = :caller AND state = :state AND id < :before
  AND born >= :since ORDER BY id DESC LIMIT :limit;

-- name: deliveries_to_url
-- The same to one address.
SELECT id FROM delivery WHERE tenant = :tenant AND url = :url AND state = :state AND id < :before
  AND born >= :since AND (:caller IS NULL OR caller = :caller) ORDER BY id DESC LIMIT :limit;

-- name: deliveries_of_task
-- The same of one call.
SELECT id FROM delivery WHERE task = (SELECT number FROM task WHERE id = :task) AND id < :before AND state = :state
  AND born >= :since AND tenant = :tenant AND (:caller IS NULL OR caller = :caller)
  AND (:url IS NULL OR url = :url) ORDER BY id DESC LIMIT :limit;

-- name: pending_to
-- Notices that wait for one address and that nobody holds.
SELECT d.id, d.task, d.callback FROM delivery AS d LEFT JOIN job ON job.id = d.id
WHERE d.tenant = ?1 AND d.url = ?2 AND d.state = 0 AND job.replica IS NULL ORDER BY d.id LIMIT ?3;

-- name: receiver
-- What is held against an address.
SELECT failing, disabled, reason FROM receiver WHERE tenant = ?1 AND url = ?2;

-- name: receiver_failed
-- It failed; the first time since it last took something counts.
INSERT INTO receiver (tenant, url, failing) VALUES (?1, ?2, ?3)
ON CONFLICT (tenant, url) DO UPDATE SET failing = coalesce(failing, excluded.failing);

-- name: receiver_took
-- It took something: nothing is held against it any more. One that is disabled stays so unless it was a replay.
DELETE FROM receiver WHERE tenant = ?1 AND url = ?2 AND (disabled IS NULL OR ?3);

-- name: disable_receiver
-- Nothing is sent to it any more; the first reason stays.
INSERT INTO receiver (tenant, url, disabled, reason) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (tenant, url)
DO UPDATE SET disabled = coalesce(disabled, excluded.disabled), reason = coalesce(reason, excluded.reason);

-- name: enable_receiver
-- Forget what was held against it.
DELETE FROM receiver WHERE tenant = ?1 AND url = ?2;

-- name: put_mail
-- A message for a box.
INSERT INTO mail (tenant, box, body, at) VALUES (?1, ?2, ?3, ?4);

-- name: drop_mail
-- What has arrived.
DELETE FROM mail WHERE tenant = ?1 AND box = ?2 AND id <= ?3;

-- name: mail_of
-- What waits in a box, oldest first.
SELECT id, body FROM mail WHERE tenant = ?1 AND box = ?2 ORDER BY id LIMIT ?3;

-- name: next_mail
-- The oldest message of a box beyond a number.
SELECT id, body FROM mail WHERE tenant = ?1 AND box = ?2 AND id > ?3 ORDER BY id LIMIT 1;

-- name: drop_letter
-- One message has arrived.
DELETE FROM mail WHERE tenant = ?1 AND box = ?2 AND id = ?3;

-- name: name_holder
-- Whose a name is: the agent that has, or once had, it as id or alias.
SELECT agent FROM agent_name WHERE tenant = ?1 AND name = ?2;

-- name: uuid_holder
-- Whose a UUID is, in any tenant.
SELECT number FROM agent WHERE uuid = ?1;

-- name: agent_by_number
-- An agent as it stands.
SELECT number, doc FROM agent WHERE number = ?1;

-- name: add_agent
-- A new agent gets a number.
INSERT INTO agent (tenant, id, uuid, status, score, p95_ms, availability, doc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
RETURNING number;

-- name: change_agent
-- How an agent stands now.
UPDATE agent SET status = ?2, score = ?3, p95_ms = ?4, availability = ?5, doc = ?6 WHERE number = ?1;

-- name: add_name
-- An id or alias belongs to an agent from now on.
INSERT INTO agent_name (tenant, name, agent) VALUES (?1, ?2, ?3) ON CONFLICT (tenant, name) DO NOTHING;

-- name: put_card
-- A version of a card; said again it becomes the newest.
REPLACE INTO card_version (agent, version, card) VALUES (?1, ?2, ?3);

-- name: card_of_version
-- A card as it was in one version.
SELECT card FROM card_version WHERE agent = ?1 AND version = ?2;

-- name: versions_of
-- The versions a card has had, newest first.
SELECT version FROM card_version WHERE agent = ?1 ORDER BY number DESC;

-- name: add_facet
-- One thing an agent is found by.
INSERT INTO agent_facet (tenant, shelf, kind, value, score, id, agent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: drop_facet
-- One thing it is no longer found by.
DELETE FROM agent_facet WHERE tenant = ?1 AND shelf = ?2 AND kind = ?3 AND value = ?4 AND score = ?5 AND id = ?6;

-- name: add_indexed
-- All that an agent is found by, as words of the index.
INSERT INTO agent_index (rowid, found_by, words) VALUES (?1, ?2, ?3);

-- name: drop_indexed
-- It is no longer found by them.
DELETE FROM agent_index WHERE rowid = ?1;

-- name: walk_facet
-- Agents with one facet, best first: those that are worse than a rating.
SELECT 0, f.score, f.id, f.agent, a.p95_ms, a.availability
FROM agent_facet AS f CROSS JOIN agent AS a ON a.number = f.agent
WHERE f.tenant = :tenant AND f.shelf = :shelf AND f.kind = :kind AND f.value = :value
  AND f.score < :score AND f.score >= :least
ORDER BY f.score DESC, f.id LIMIT :limit OFFSET :offset;

-- name: walk_equals
-- The same for those of one rating, after an id.
SELECT 0, f.score, f.id, f.agent, a.p95_ms, a.availability
FROM agent_facet AS f CROSS JOIN agent AS a ON a.number = f.agent
WHERE f.tenant = :tenant AND f.shelf = :shelf AND f.kind = :kind AND f.value = :value
  AND f.score = :score AND f.id > :id
ORDER BY f.id LIMIT :limit;

-- name: count_facet
-- How many have a facet, counted to one more than is shown.
SELECT count(*) FROM (SELECT 1 FROM agent_facet AS f
WHERE f.tenant = :tenant AND f.shelf = :shelf AND f.kind = :kind AND f.value = :value AND f.score >= :least
LIMIT :limit);

-- name: walk_index
-- Agents that an expression of the index finds, best first, after a row.
SELECT i.row, a.score, a.id, a.number, a.p95_ms, a.availability FROM (
  SELECT rowid AS row FROM agent_index WHERE agent_index MATCH :match AND rowid > :after AND rowid < :end
  ORDER BY rowid LIMIT :limit OFFSET :offset) AS i CROSS JOIN agent AS a ON a.number = (i.row & 0xFFFFFFFFFF);

-- name: count_index
-- How many it finds, counted to one more than is shown.
SELECT count(*) FROM (
  SELECT 1 FROM agent_index WHERE agent_index MATCH :match AND rowid > 0 AND rowid < :end LIMIT :limit);

-- name: add_key
-- A new key.
INSERT INTO api_key (id, tenant, created, revoked, used, doc, terms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: key_by_id
-- One key.
SELECT doc, revoked, used, terms FROM api_key WHERE id = ?1;

-- name: keys_of_tenant
-- A tenant's keys, newest first.
SELECT doc, revoked, used, terms FROM api_key WHERE tenant = ?1 ORDER BY created DESC, id DESC;

-- name: all_keys
-- All keys, newest first.
SELECT doc, revoked, used, terms FROM api_key ORDER BY created DESC, id DESC;

-- name: revoke_key
-- End a key; the first end stays.
UPDATE api_key SET revoked = coalesce(revoked, ?2) WHERE id = ?1 RETURNING id;

-- name: change_key
-- Set a key's terms.
UPDATE api_key SET terms = ?2 WHERE id = ?1 RETURNING id;

-- name: use_key
-- Note a use, at most once a minute.
UPDATE api_key SET used = ?2 WHERE id = ?1 AND (used IS NULL OR used <= ?2 - 60000000);

-- name: put_sealed
-- Keep a sealed value.
INSERT INTO sealed (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: get_sealed
-- A sealed value.
SELECT value FROM sealed WHERE name = ?1;

-- name: put_duration
-- How long the last calls of a skill took.
INSERT INTO duration (tenant, agent, skill, last_ms) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, agent, skill) DO UPDATE SET last_ms = excluded.last_ms;

-- name: get_duration
-- The same, read back.
SELECT last_ms FROM duration WHERE tenant = ?1 AND agent = ?2 AND skill = ?3;

-- name: put_rating
-- What its caller says of a call, in place of what it said before.
INSERT INTO rating (task, tenant, agent, stars, comment, rated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (task) DO UPDATE SET stars = excluded.stars, comment = excluded.comment, rated_at = excluded.rated_at;

-- name: sum_ratings
-- The stars of an agent's newest ratings, and how many those are.
SELECT coalesce(sum(stars), 0), count(*) FROM (
  SELECT stars FROM rating WHERE tenant = ?1 AND agent = ?2 ORDER BY rated_at DESC LIMIT ?3
);

-- name: see_mark
-- Take note of a mark, if it is not known or can no longer count; one row if it is new.
INSERT INTO seen (tenant, caller, mark, expires) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, caller, mark) DO UPDATE SET expires = excluded.expires WHERE seen.expires < ?5
RETURNING expires;

-- name: forget_marks
-- Drop some of the marks that cannot count any more.
DELETE FROM seen WHERE (tenant, caller, mark) IN (
  SELECT tenant, caller, mark FROM seen WHERE expires < ?1 LIMIT ?2
);

-- name: add_act
-- The next row of the audit: an act.
INSERT INTO audit (n, at, tenant, principal, key, action, object, outcome, request, digest, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: add_covers
-- The next row of the audit: what a commit wrote of calls.
INSERT INTO audit (n, at, tenant, principal, action, object, outcome, digest, covers, hash)
VALUES (?1, ?2, '', '', 'calls.written', '', '', ?3, ?4, ?5);

-- name: last_audit
-- Where the chain stands.
SELECT n, hash FROM audit WHERE n > 0 ORDER BY n DESC LIMIT 1;

-- name: set_audit_tip
-- Which row is the last act.
INSERT INTO audit_tip (id, n, hash) VALUES (1, ?1, ?2)
ON CONFLICT (id) DO UPDATE SET n = excluded.n, hash = excluded.hash;

-- name: audit_tip
-- The same, read back, beside the hash that the row itself has.
SELECT n, hash, (SELECT hash FROM audit WHERE audit.n = audit_tip.n) FROM audit_tip WHERE id = 1;

-- name: set_task_digest
-- What the audit knows of a task that has changed.
UPDATE task SET digest = ?2, sums = ?3, covered_by = ?4 WHERE number = ?1;

-- name: audited_task
-- The whole row of a task.
SELECT number, id, tenant, caller, context, state, state_at, last_seq, agent, skill, dialect, trace, parent, doc, log,
  digest, sums, covered_by, forgotten
FROM task WHERE number = ?1;

-- name: audit_rows
-- Rows of the audit in their order, after one, up to another.
SELECT n, at, tenant, principal, key, action, object, outcome, request, digest, covers, hash FROM audit
WHERE n > ?1 AND n <= ?2 ORDER BY n LIMIT ?3;

-- name: audit_row
-- What a row of the audit covers, when it was written, and its hash.
SELECT at, covers, hash FROM audit WHERE n = ?1;

-- name: audited_tasks
-- What tasks say of the audit, in the order of their numbers.
SELECT number, id, digest, covered_by FROM task WHERE number > ?1 ORDER BY number LIMIT ?2;

-- name: acts
-- Acts of all tenants, newest first.
SELECT n, at, tenant, principal, key, action, object, outcome, request, digest, covers, hash FROM audit
WHERE covers IS NULL AND n < :before AND at >= :since AND at <= :until AND (:action IS NULL OR action = :action)
  AND (:object IS NULL OR object = :object) AND (:principal IS NULL OR principal = :principal)
ORDER BY n DESC LIMIT :limit;

-- name: acts_of_tenant
-- The same of one.
SELECT n, at, tenant, principal, key, action, object, outcome, request, digest, covers, hash FROM audit
WHERE covers IS NULL AND tenant = :tenant AND n < :before AND at >= :since AND at <= :until
  AND (:action IS NULL OR action = :action) AND (:object IS NULL OR object = :object)
  AND (:principal IS NULL OR principal = :principal)
ORDER BY n DESC LIMIT :limit;

-- name: covering_rows
-- Rows that cover calls, newest first.
SELECT n, at, tenant, principal, key, action, object, outcome, request, digest, covers, hash FROM audit
WHERE n < :before AND covers IS NOT NULL AND at >= :since AND at <= :until ORDER BY n DESC LIMIT :limit;

-- name: keep_audit_head
-- A signed head.
INSERT INTO audit_head (n, token) VALUES (?1, ?2) ON CONFLICT (n) DO UPDATE SET token = excluded.token;

-- name: audit_heads
-- The newest signed heads, each with the hash that its row has now.
SELECT n, token, (SELECT hash FROM audit WHERE audit.n = audit_head.n) FROM audit_head WHERE n > 0 ORDER BY n DESC LIMIT ?1;

-- name: forget_task
-- What is left of a task when what was written in it is removed.
UPDATE task SET doc = ?2, log = ?3, forgotten = ?4 WHERE number = ?1;

-- name: task_to_forget
-- Which task it is: tenant and principal are part of the question.
SELECT number FROM task WHERE id = ?1 AND tenant = ?2 AND (?3 IS NULL OR caller = ?3);

-- name: change_event
-- What is left of an event.
UPDATE event SET body = ?2 WHERE key = ?1;

-- name: forget_deliveries
-- What was told of a task, and what is still owed: addresses and answers go with it.
DELETE FROM delivery WHERE task = ?1 RETURNING id;

-- name: forget_rating
-- What its caller said of a task.
UPDATE rating SET comment = NULL WHERE task = ?1;

-- name: open_calls
-- How many calls of each tenant are open, among those that are not completed.
SELECT tenant, count(*) FROM task INDEXED BY task_not_completed WHERE state <> 4 AND state < 4 GROUP BY tenant;

-- name: stored_calls
-- How much the calls of one stretch of numbers take, by tenant; without their events.
SELECT tenant, coalesce(length(doc), 0) + coalesce(length(log), 0), number FROM task
WHERE number > ?1 ORDER BY number LIMIT ?2;

-- name: stored_events
-- How much the events of one stretch of numbers take, each with its key.
SELECT key, length(body) FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3;

-- name: count_tenants_agents
-- How many agents a tenant has, counted no further than it may have; those that were removed stand on no shelf.
SELECT count(*) FROM (SELECT 1 FROM agent_facet
  WHERE tenant = ?1 AND shelf IN (0, 1) AND kind = 'all' AND value = '' LIMIT ?2);

-- part F4: statistics, health

-- name: add_minute
-- Add to what calls of a skill came to within a minute.
INSERT INTO minute (tenant, agent, minute, skill, status, count, sum_ms,
  b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25,
  ?26, ?27, ?28, ?29, ?30, ?31)
ON CONFLICT (tenant, agent, minute, skill, status) DO UPDATE SET
  count = count + excluded.count, sum_ms = sum_ms + excluded.sum_ms,
  b0 = b0 + excluded.b0, b1 = b1 + excluded.b1, b2 = b2 + excluded.b2, b3 = b3 + excluded.b3, b4 = b4 + excluded.b4,
  b5 = b5 + excluded.b5, b6 = b6 + excluded.b6, b7 = b7 + excluded.b7, b8 = b8 + excluded.b8, b9 = b9 + excluded.b9,
  b10 = b10 + excluded.b10, b11 = b11 + excluded.b11, b12 = b12 + excluded.b12, b13 = b13 + excluded.b13,
  b14 = b14 + excluded.b14, b15 = b15 + excluded.b15, b16 = b16 + excluded.b16, b17 = b17 + excluded.b17,
  b18 = b18 + excluded.b18, b19 = b19 + excluded.b19, b20 = b20 + excluded.b20, b21 = b21 + excluded.b21,
  b22 = b22 + excluded.b22, b23 = b23 + excluded.b23;

-- name: minutes_of_agent
-- What an agent's calls came to, so many minutes at a time, by skill and outcome.
SELECT minute / :by * :by AS at, tenant, agent, skill, status, sum(count), sum(sum_ms),
  sum(b0), sum(b1), sum(b2), sum(b3), sum(b4), sum(b5), sum(b6), sum(b7), sum(b8), sum(b9), sum(b10), sum(b11),
  sum(b12), sum(b13), sum(b14), sum(b15), sum(b16), sum(b17), sum(b18), sum(b19), sum(b20), sum(b21), sum(b22),
  sum(b23)
FROM minute WHERE tenant = :tenant AND agent = :agent AND minute >= :since AND minute < :until
  AND (:skill IS NULL OR skill = :skill)
GROUP BY at, skill, status ORDER BY at, skill, status;

-- name: minutes_of_all
-- The same for all agents of a tenant, or of all.
SELECT minute / :by * :by AS at, '', '', '', status, sum(count), sum(sum_ms),
  sum(b0), sum(b1), sum(b2), sum(b3), sum(b4), sum(b5), sum(b6), sum(b7), sum(b8), sum(b9), sum(b10), sum(b11),
  sum(b12), sum(b13), sum(b14), sum(b15), sum(b16), sum(b17), sum(b18), sum(b19), sum(b20), sum(b21), sum(b22),
  sum(b23)
FROM minute INDEXED BY minute_at WHERE minute >= :since AND minute < :until AND (:tenant IS NULL OR tenant = :tenant)
  AND (:skill IS NULL OR skill = :skill)
GROUP BY at, status ORDER BY at, status;

-- name: set_agent_figures
-- What was measured of an agent, where it stays at its place in every search.
UPDATE agent SET p95_ms = ?2, availability = ?3, doc = ?4 WHERE number = ?1;

-- name: reroute_task
-- Which agent has a task now.
UPDATE task SET agent = ?2 WHERE number = ?1;

-- name: agents_to_check
-- Agents of all tenants whose health may be looked at, in the order of their numbers.
SELECT number, doc FROM agent WHERE number > ?1 AND status IN ('active', 'unreachable') ORDER BY number LIMIT ?2;

-- Backlog

-- name: count_deliveries
-- How many notices of all tenants are in one state: from one tenant to the next, never through the others' states.
WITH RECURSIVE of_tenant (name) AS (
  SELECT min(tenant) FROM delivery
  UNION ALL
  SELECT (SELECT min(tenant) FROM delivery WHERE tenant > of_tenant.name) FROM of_tenant WHERE of_tenant.name IS NOT NULL
)
SELECT sum((SELECT count(*) FROM delivery WHERE tenant = of_tenant.name AND state = ?1)) FROM of_tenant
WHERE of_tenant.name IS NOT NULL;

-- name: oldest_job
-- The oldest job of a queue that nobody holds: how often it was begun, and since when its work is there.
SELECT job.attempt, coalesce(delivery.born, task.state_at, 0) FROM job
LEFT JOIN task ON task.number = job.task LEFT JOIN delivery ON delivery.id = job.id
WHERE job.id = (SELECT min(id) FROM job WHERE queue = ?1 AND replica IS NULL AND run_at IS NULL);

-- Usage

-- name: add_usage
-- Add to what calls of one day used up.
INSERT INTO usage_day (
  day, tenant, caller, target, skill, model, calls, tokens, input_tokens, output_tokens, cost, estimated)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (day, tenant, caller, target, skill, model) DO UPDATE SET
  calls = calls + excluded.calls, tokens = tokens + excluded.tokens,
  input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
  cost = cost + excluded.cost, estimated = estimated + excluded.estimated;

-- name: drop_usage
-- Days that are over for long.
DELETE FROM usage_day WHERE day < ?1;

-- name: set_usage_mark
-- Up to which row of the audit calls are counted.
INSERT INTO usage_mark (id, audited, at) VALUES (1, ?1, ?2)
ON CONFLICT (id) DO UPDATE SET audited = excluded.audited, at = excluded.at;

-- name: usage_mark
-- The same, read back.
SELECT audited, at FROM usage_mark WHERE id = 1;

-- name: covered_after
-- What commits after one wrote of calls.
SELECT n, covers FROM audit WHERE n > ?1 AND covers IS NOT NULL ORDER BY n LIMIT ?2;

-- name: ended_between
-- A task, if it ended within a time.
SELECT number, doc, log FROM task WHERE number = ?1 AND state >= 4 AND state_at >= ?2 AND state_at < ?3;

-- name: usage_of_caller
-- What one caller used up on one day.
SELECT sum(calls), sum(tokens), sum(input_tokens), sum(output_tokens), sum(cost), sum(estimated) FROM usage_day
WHERE day = ?1 AND tenant = ?2 AND caller = ?3;

-- name: usage_by
-- What a tenant's calls of some days used up, by one of the things that are known of them.
SELECT CASE :by WHEN 'caller' THEN u.caller WHEN 'target' THEN u.target WHEN 'skill' THEN u.skill
    WHEN 'model' THEN u.model ELSE CAST(u.day AS TEXT) END AS name,
  sum(u.calls), sum(u.tokens), sum(u.input_tokens), sum(u.output_tokens), sum(u.cost), sum(u.estimated)
FROM json_each(:days) AS d CROSS JOIN usage_day AS u ON u.day = d.value AND u.tenant = :tenant
WHERE (:caller IS NULL OR u.caller = :caller) GROUP BY name LIMIT :limit;

-- name: calls_in_context
-- How many calls a conversation has had, counted no further than needed.
SELECT count(*) FROM (
  SELECT 1 FROM task WHERE tenant = ?1 AND context = ?2 AND state_at >= ?3 AND (?4 IS NULL OR caller = ?4) LIMIT ?5);

-- name: callers_tasks_in_context
-- A caller's tasks in one conversation, newest status first.
SELECT number, doc, log FROM task WHERE tenant = ?1 AND context = ?2 AND caller = ?3
ORDER BY state_at DESC, number DESC LIMIT ?4;

-- name: tasks_below
-- The calls that belong to one.
SELECT number, doc, log FROM task WHERE parent = ?1 AND parent IS NOT NULL LIMIT ?2;

-- Retention

-- name: calls_by_number
-- Calls in the order of their numbers, each with how much its row takes, and whether it may have events of its own.
SELECT number, id, tenant, context, state, state_at, coalesce(length(doc), 0) + coalesce(length(log), 0),
  doc IS NOT NULL FROM task WHERE number > ?1 ORDER BY number LIMIT ?2;

-- name: ends_of_context
-- The first and the last call of a conversation.
SELECT min(number), max(number) FROM task WHERE tenant = ?1 AND context = ?2;

-- name: owed
-- What is still to be done for a call: its job, and notices that nobody has taken yet; and its last notice.
SELECT (SELECT count(*) FROM job WHERE id = ?1), coalesce(sum(state = 0), 0), coalesce(max(id), 0)
FROM delivery WHERE task = ?1;

-- name: remove_call
-- A call that has ended is gone.
DELETE FROM task WHERE number = ?1 AND state >= 4;

-- name: remove_events
-- Some of its events, each with its size.
DELETE FROM event WHERE key IN (SELECT key FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3)
RETURNING length(body);

-- name: remove_notices
-- What was told of it.
DELETE FROM delivery WHERE task = ?1;

-- name: drop_comment
-- What its caller wrote of it.
UPDATE rating SET comment = NULL WHERE task = ?1 AND comment IS NOT NULL;

-- name: remove_aliases
-- The names that its caller gave it.
DELETE FROM idem WHERE task = ?1 AND scope = 'alias';

-- name: remove_old_rating
-- What its caller said of it, where so many others said something of the agent since.
DELETE FROM rating WHERE task = ?1 AND rated_at < (
  SELECT rated_at FROM rating AS newer WHERE newer.tenant = rating.tenant AND newer.agent = rating.agent
  ORDER BY rated_at DESC LIMIT 1 OFFSET ?2);

-- name: mark_removed
-- A stretch of numbers whose calls are gone, and the row of the audit that says so.
INSERT INTO removed (first, last, covered_by) VALUES (?1, ?2, ?3);

-- name: removed_near
-- The stretch that a number may be in.
SELECT last, covered_by FROM removed WHERE first <= ?1 ORDER BY first DESC LIMIT 1;

-- name: set_removed_last
-- The highest numbers that were removed.
INSERT INTO removed_last (id, task, delivery) VALUES (1, ?1, ?2)
ON CONFLICT (id) DO UPDATE SET task = max(task, excluded.task), delivery = max(delivery, excluded.delivery);

-- name: removed_last
-- The same, read back.
SELECT task, delivery FROM removed_last WHERE id = 1;

-- name: note_rest
-- A removed call has left events.
INSERT INTO removed_rest (number) VALUES (?1) ON CONFLICT (number) DO NOTHING;

-- name: next_rest
-- The first removed call that has left events.
SELECT min(number) FROM removed_rest WHERE number > 0;

-- name: drop_rest
-- It has left none any more.
DELETE FROM removed_rest WHERE number = ?1;

-- name: remove_keys
-- Some of the keys that have expired.
DELETE FROM idem WHERE (tenant, principal, scope, key) IN (
  SELECT tenant, principal, scope, key FROM idem WHERE expires <= ?1 LIMIT ?2
) RETURNING expires;

-- name: remove_marks
-- Some of the marks that cannot count any more.
DELETE FROM seen WHERE (tenant, caller, mark) IN (
  SELECT tenant, caller, mark FROM seen WHERE expires < ?1 LIMIT ?2
) RETURNING expires;

-- name: remove_mail
-- The messages among the oldest that came before a time.
DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE id > 0 ORDER BY id LIMIT ?2) AND at < ?1 RETURNING id;

-- name: oldest_audit
-- The oldest rows of the audit.
SELECT n, at, covers, hash, action, object FROM audit WHERE n > ?1 ORDER BY n LIMIT ?2;

-- name: remove_audit
-- Rows of the audit up to one.
DELETE FROM audit WHERE n > ?1 AND n <= ?2;

-- name: remove_audit_heads
-- Signed heads of rows that are gone.
DELETE FROM audit_head WHERE n <= ?1;

-- name: remove_removed
-- Removed calls that no row of the audit asks after any more.
DELETE FROM removed WHERE covered_by <= ?1;

-- name: set_audit_base
-- Where the audit begins.
INSERT INTO audit_base (id, n, hash, calls, noted_by) VALUES (1, ?1, ?2, ?3, ?4)
ON CONFLICT (id) DO UPDATE SET n = excluded.n, hash = excluded.hash, calls = excluded.calls, noted_by = excluded.noted_by;

-- name: audit_base
-- The same, read back.
SELECT n, hash, calls, noted_by FROM audit_base WHERE id = 1;

-- name: own_tables
-- The tables of the file, those inside the full-text index among them.
SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0;

-- name: first_minute
-- The oldest minute of the statistics.
SELECT minute FROM minute INDEXED BY minute_at WHERE minute > 0 ORDER BY minute LIMIT 1;

-- name: minutes_to_fold
-- Minutes of a stretch that are no hours yet.
SELECT tenant, agent, minute, skill, status, count, sum_ms,
  b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23
FROM minute INDEXED BY minute_at WHERE minute >= ?1 AND minute < ?2 AND minute % 60 <> 0 ORDER BY minute LIMIT ?3;

-- name: drop_minute
-- It was added to its hour.
DELETE FROM minute WHERE tenant = ?1 AND agent = ?2 AND minute = ?3 AND skill = ?4 AND status = ?5;

-- name: remove_minutes
-- Some of the statistics from before a minute.
DELETE FROM minute WHERE (tenant, agent, minute, skill, status) IN (
  SELECT tenant, agent, minute, skill, status FROM minute INDEXED BY minute_at WHERE minute < ?1 LIMIT ?2
) RETURNING minute;
