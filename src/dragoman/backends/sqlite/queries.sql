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
  number, id, tenant, caller, context, state, state_at, last_seq, log, agent, skill, dialect, trace, digest, covered_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: add_task
-- The opening of a call.
INSERT INTO task (
  number, id, tenant, caller, context, state, state_at, last_seq, doc, agent, skill, dialect, trace, digest, sums,
  covered_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: add_event
-- One event under its key.
INSERT INTO event (key, body) VALUES (?1, ?2);

-- name: grow_task
-- A step that leaves the state: no index is touched. Only from the event number it expects, never after the end.
UPDATE task SET last_seq = ?3, doc = coalesce(?4, doc)
WHERE id = ?1 AND last_seq = ?2 AND state < 4
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace;

-- name: move_task
-- A step that may change the state. Only from the event number it expects, never after the end.
UPDATE task SET last_seq = ?3, doc = coalesce(?4, doc), state = ?5,
  state_at = CASE state WHEN ?5 THEN state_at ELSE ?6 END
WHERE id = ?1 AND last_seq = ?2 AND state < 4
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace;

-- name: note_task
-- A change that is no event, of the document alone: after the end, too. What was forgotten does not come back with it.
UPDATE task SET doc = ?3 WHERE id = ?1 AND last_seq = ?2 AND (forgotten IS NULL OR ?4)
RETURNING number, state_at, sums, forgotten, agent, skill, dialect, trace;

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
-- The newest of one trace, in no order that a list has.
SELECT state_at, number FROM task
WHERE trace = :trace AND trace <> '' AND tenant = :tenant AND state_at >= :since
  AND (:caller IS NULL OR caller = :caller) AND (:context IS NULL OR context = :context)
  AND (:state IS NULL OR state = :state) AND (:agent IS NULL OR agent = :agent)
  AND (:skill IS NULL OR skill = :skill) AND (:dialect IS NULL OR dialect = :dialect)
  AND (:prefix IS NULL OR (id >= :prefix AND id < :beyond))
ORDER BY number DESC LIMIT :limit;

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
-- Sleeping jobs whose time has come wait again.
UPDATE job SET run_at = NULL WHERE id IN (
  SELECT id FROM job WHERE run_at <= ?1 AND run_at IS NOT NULL AND replica IS NULL
  ORDER BY run_at LIMIT 1000);

-- name: next_due
-- When the next sleeping job falls due.
SELECT run_at FROM job WHERE run_at IS NOT NULL AND replica IS NULL ORDER BY run_at LIMIT 1;

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
SELECT callback, seq, tries, replays > 0 FROM delivery WHERE id = ?1 AND state = 0;

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
INSERT INTO mail (tenant, box, body) VALUES (?1, ?2, ?3);

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

-- name: add_text
-- The words an agent is found by.
INSERT INTO agent_text (rowid, place, words) VALUES (?1, ?2, ?3);

-- name: drop_text
-- Forget its words.
DELETE FROM agent_text WHERE rowid = ?1;

-- name: facet_size
-- How common a facet is, counted no further than needed to choose the rarest.
SELECT count(*) FROM (SELECT 1 FROM agent_facet
  WHERE tenant = ?1 AND shelf = ?2 AND kind = ?3 AND value = ?4 LIMIT ?5);

-- name: has_facet
-- Whether an agent has a facet.
SELECT count(*) FROM agent_facet WHERE tenant = ?1 AND shelf = ?2 AND kind = ?3 AND value = ?4 AND score = ?5 AND id = ?6;

-- name: words_size
-- How common words are, counted no further than needed to choose how to look them up.
SELECT count(*) FROM (SELECT rowid FROM agent_text WHERE agent_text MATCH ?1 LIMIT ?2);

-- name: walk_agents
-- Agents with one facet, best first, after a position; those that lack another facet, a word or a figure are passed.
-- Words of few agents are looked up once, all of them; a common word is looked up for each agent on the way.
SELECT f.score, f.id, f.agent FROM agent_facet AS f
WHERE f.tenant = :tenant AND f.shelf = :shelf AND f.kind = :kind AND f.value = :value
  AND f.score <= :score AND f.score >= :least AND (f.score < :score OR f.id > :id)
  AND (:must IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:must) AS m WHERE NOT EXISTS (
      SELECT 1 FROM agent_facet AS p
      WHERE p.tenant = f.tenant AND p.shelf = f.shelf AND p.kind = json_extract(m.value, '$[0]')
        AND p.value = json_extract(m.value, '$[1]') AND p.score = f.score AND p.id = f.id)))
  AND (:without IS NULL OR NOT EXISTS (
    SELECT 1 FROM agent_facet AS n
    WHERE n.tenant = f.tenant AND n.shelf = f.shelf AND n.kind = 'capability' AND n.value = :without
      AND n.score = f.score AND n.id = f.id))
  AND (:words IS NULL OR f.agent IN (SELECT rowid FROM agent_text WHERE agent_text MATCH :words))
  AND (:common IS NULL OR EXISTS (SELECT 1 FROM agent_text WHERE agent_text MATCH :common AND rowid = f.agent))
  AND (:figures IS NULL OR EXISTS (
    SELECT 1 FROM agent AS a WHERE a.number = f.agent AND a.p95_ms <= :p95_ms AND a.availability >= :availability))
ORDER BY f.score DESC, f.id LIMIT :limit OFFSET :offset;

-- name: count_agents
-- How many a walk would find, counted to one more than is shown.
SELECT count(*) FROM (SELECT 1 FROM agent_facet AS f
WHERE f.tenant = :tenant AND f.shelf = :shelf AND f.kind = :kind AND f.value = :value AND f.score >= :least
  AND (:must IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:must) AS m WHERE NOT EXISTS (
      SELECT 1 FROM agent_facet AS p
      WHERE p.tenant = f.tenant AND p.shelf = f.shelf AND p.kind = json_extract(m.value, '$[0]')
        AND p.value = json_extract(m.value, '$[1]') AND p.score = f.score AND p.id = f.id)))
  AND (:without IS NULL OR NOT EXISTS (
    SELECT 1 FROM agent_facet AS n
    WHERE n.tenant = f.tenant AND n.shelf = f.shelf AND n.kind = 'capability' AND n.value = :without
      AND n.score = f.score AND n.id = f.id))
  AND (:words IS NULL OR f.agent IN (SELECT rowid FROM agent_text WHERE agent_text MATCH :words))
  AND (:figures IS NULL OR EXISTS (
    SELECT 1 FROM agent AS a WHERE a.number = f.agent AND a.p95_ms <= :p95_ms AND a.availability >= :availability))
LIMIT :limit);

-- name: agents_with_words
-- Agents whose words match, unranked, up to a number of candidates.
SELECT a.score, a.id, a.number FROM agent_text CROSS JOIN agent AS a ON a.number = agent_text.rowid
WHERE agent_text MATCH :words AND a.tenant = :tenant AND a.score >= :least
  AND a.p95_ms <= :p95_ms AND a.availability >= :availability
LIMIT :limit;

-- name: add_key
-- A new key.
INSERT INTO api_key (id, tenant, created, revoked, used, doc) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: key_by_id
-- One key.
SELECT doc, revoked, used FROM api_key WHERE id = ?1;

-- name: keys_of_tenant
-- A tenant's keys, newest first.
SELECT doc, revoked, used FROM api_key WHERE tenant = ?1 ORDER BY created DESC, id DESC;

-- name: all_keys
-- All keys, newest first.
SELECT doc, revoked, used FROM api_key ORDER BY created DESC, id DESC;

-- name: revoke_key
-- End a key; the first end stays.
UPDATE api_key SET revoked = coalesce(revoked, ?2) WHERE id = ?1 RETURNING id;

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
SELECT number, id, tenant, caller, context, state, state_at, last_seq, agent, skill, dialect, trace, doc, log, digest,
  sums, covered_by, forgotten
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
-- How many agents a tenant has, without those that were removed.
SELECT count(*) FROM agent WHERE tenant = ?1 AND status <> 'removed';
