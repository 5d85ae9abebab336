-- The same board as schema 9 holds it, with a team, a label and an advice.
INSERT INTO projects (id, version, name, root, common_dir, branch, worktrees, paused, config_text, config_hash,
    config_origin, target, baseline_commit, baseline_verdict, person_tip, person_absorbed, person_refused, created_at,
    removed_at)
VALUES (1, 3, 'shop', '/home/ada/shop', '/home/ada/shop/.git', 'main', '/home/ada/shop-legion', 0,
    '[checks.test]', 'hash-1', 'target', 'cccccccccccccccccccccccccccccccccccccccc',
    'cccccccccccccccccccccccccccccccccccccccc', 'green', NULL, NULL, NULL, 1000.5, NULL);

INSERT INTO trusted (project, hash, at) VALUES (1, 'hash-1', 1001);

INSERT INTO requests (project, request, answer, at) VALUES (1, 'again', '{"ids": [3]}', 1003);

INSERT INTO tickets (id, project, version, state, live, attempt, interrupted, spared, title, after, checkpoint, epic,
    priority, max_attempts, driver, model, parked, base, plant, change_base, change_commit, landed, unchecked,
    created_at, moved_at, dropped_at, files, proofs, command, reason, feedback,
    asks, budget, undoes)
VALUES
    (1, 1, 5, 'done', 0, 1, 0, 0, 'Tills', '[]', 0, '', 0, 5, '', '', NULL, NULL, NULL, 'bbbb', 'aaaa',
    'cccccccccccccccccccccccccccccccccccccccc', 0, 1002, 1500, NULL, '[]', '["make test"]', './agent', '', '', 1, 2.5, NULL),
    (2, 1, 4, 'parked', 1, 2, 1, 0, 'Shelves', '[]', 0, '', 1, 5, '', '',
    '{"reason": "limit", "detail": "till noon", "back_to": "queued", "until": 5000.0}', NULL, NULL, NULL, NULL, NULL,
    0, 1002, 1600, NULL, '[]', '[]', './agent', 'till noon', '', 0, NULL, NULL),
    (3, 1, 1, 'queued', 1, 0, 0, 0, 'Doors', '[1, 2]', 0, 'front', 0, 5, '', '', NULL, NULL, NULL, NULL, NULL, NULL,
    0, 1003, 1003, NULL, '["src/*.py"]', '[]', './agent', '', '', 0, NULL, 1);

INSERT INTO wishes (ticket, text, context, criteria, plan)
VALUES (1, 'Mend the till', 'The old till
rings twice.', '', ''), (2, 'Shelves', '', '', ''), (3, 'Doors', '', '', '');

INSERT INTO edges (ticket, after) VALUES (3, 1), (3, 2);

INSERT INTO agents (number, id, project, parent, name, role, task, model, tools, budget, headcount, depth, tier, base,
    owes, held_until, held_why, hired_at, fired_at)
VALUES (1, 'a-manager', 1, 'root', 'Ada', 'manager', 'Lead.', 'opus', NULL, 5, 3, 2, 'opus', 'aaaa', 0, NULL, '',
    1050, NULL),
    (2, 'a-reader', 1, 'a-manager', 'Ben', '', 'Read.', '', '["Read"]', 1, 0, 0, 'haiku', NULL, 1, 1600, 'limit',
    1060, 1700);

INSERT INTO mail (number, id, sender, recipient, kind, text, sent_at, delivery, batch, heard_at, about)
VALUES (1, 'm1', 'root', 'a-manager', 'task', 'Lead.', 1050, 'heard', 'p1', 1070, ''),
    (2, 'm2', 'a-manager', 'root', 'result', 'I lead.', 1080, 'waiting', '', NULL, '');

INSERT INTO calls (caller, request, answer, at) VALUES ('a-manager', 'again', '{"id": "a-reader"}', 1060);

INSERT INTO runs (id, project, ticket, agent, attempt, generation, started_at, ended_at, outcome, detail, saved,
    conversation, access, prompt)
VALUES (1, 1, 1, NULL, 1, 1, 1100, 1200, 'lost', '', NULL, 'one-talk', 'anthropic', ''),
    (2, 1, 1, NULL, 1, 2, 1210, 1300, 'finished', '', 'aaaa', 'one-talk', 'anthropic', ''),
    (99, 1, NULL, 1, 1, 1, 1210, 1300, 'finished', '', 'aaaa', 'a-manager', 'anthropic', 'p1');

UPDATE counters SET value = 2 WHERE name IN ('agent', 'mail');

INSERT INTO claims (id, kind, subject, generation, machine, until, active, claimed_at, finished_at)
VALUES (1, 'run', 1, 1, 'here', NULL, 0, 1100, 1300), (2, 'land', 1, 1, 'here', NULL, 1, 1400, NULL);

INSERT INTO receipts (id, project, ticket, name, command, commit_id, tree, verdict, exit_code, duration, made_at, tail,
    output, digest)
VALUES (1, 1, 1, 'proof 1 of ticket 1', 'make test', 'aaaa', 'dddd', 'green', 0, 1.5, 1350, 'ok', 'runs/x/out', 'ff');

INSERT INTO landings (id, project, base, commit_id, tree, tickets, opened_at, closed_at, landed)
VALUES (1, 1, 'bbbb', 'cccccccccccccccccccccccccccccccccccccccc', 'dddd',
    '[[1, "cccccccccccccccccccccccccccccccccccccccc"]]', 1450, 1500, 1);

INSERT INTO events (n, at, kind, project, ticket, data)
VALUES (1, 1000.5, 'project.added', 1, NULL, '{"name": "shop"}'), (2, 1002, 'ticket.created', 1, 1, '{}');

UPDATE counters SET value = 2 WHERE name IN ('event', 'run', 'claim');

UPDATE counters SET value = 1 WHERE name IN ('project', 'receipt', 'landing');

UPDATE counters SET value = 3 WHERE name = 'ticket';

INSERT INTO usage (run, provider, model, day, requests, failed, unpriced, input, output, cache_read, cache_write, usd,
    seconds)
VALUES (2, 'anthropic', 'large', '2026-01-02', 3, 1, 0, 9000000000, 20, 30, 40, 1.5, 12.5);

INSERT INTO readings (source, file, place) VALUES ('gateway', '2026-01-02.jsonl', 9000000000);

INSERT INTO limits (provider, at, status, span, utilization, resets_at)
VALUES ('anthropic', 1250, 429, 'five hours', 0.9, 5000);

INSERT INTO questions (id, key, kind, project, agent, ticket, run, words, facts, choices, fallback, asked_at, deadline,
    settled_at, settled_by, choice, why)
VALUES (1, 'q', 'permission', 1, '', 1, 2, 'May it?', '{"tool": "Bash"}', '["yes", "no"]', 'no', 1220, 4820, 1230, 'person', 'yes',
    '');

INSERT INTO tokens (hash, agent, ticket, run, issued_at, revoked_at) VALUES ('00ff', 'a-manager', NULL, 2, 1210, 1300);

UPDATE counters SET value = 1 WHERE name = 'question';

INSERT INTO holdings (ticket, number, agent, planted, submitted, since) VALUES (3, 1, 'a-manager', 0, 0, 1700);

UPDATE agents SET plan = 'wanted' WHERE number = 1;

UPDATE counters SET value = 1 WHERE name = 'holding';

UPDATE tickets SET bound = '[[0, "make test"]]', acceptance = '["smoke"]' WHERE id = 1;

INSERT INTO runs (id, project, ticket, agent, attempt, generation, started_at, ended_at, outcome, detail, saved,
    conversation, access, prompt, role, part)
VALUES (98, 1, 1, NULL, 1, 1, 1310, 1320, 'finished', '', NULL, 'own-talk', 'anthropic', '', 'reviewer', 'read');

INSERT INTO verdicts (id, project, ticket, attempt, reader, round, base, commit_id, binding, why, refused, complaint,
    asked_at, given_at, verdict, notes)
VALUES (1, 1, 1, 1, 'reviewer', 1, 'bbbb', 'aaaa', 1, 'every change is read', 1, 'it holds no verdict', 1305, 1320,
    '{"ruling": "approve", "summary": "Fine.", "read": ["till.py"], "findings": [{"weight": "nit", "file": "till.py", "line": 3, "text": "A name.", "id": 1, "settled": false}], "settled": [], "criteria": [{"number": 1, "met": true, "why": "line 3"}]}',
    '[]');

UPDATE tickets SET review = 'always' WHERE id = 2;

UPDATE counters SET value = 1 WHERE name = 'verdict';

UPDATE tickets SET team = 'pair', crew = 'c0ffee', labels = '["urgent"]' WHERE id = 1;

INSERT INTO crews (digest, body) VALUES ('c0ffee', '{"team": "pair", "rounds": 2, "stages": [
    {"name": "lead", "part": "advise", "own_part": "read", "prompt": "Lead.", "about": "", "tools": ["Read"],
    "model": "opus", "provider": "anthropic", "driver": "", "origin": "yours", "file": "roles/lead.toml"},
    {"name": "engineer", "part": "build", "own_part": "build", "prompt": "Build.", "about": "", "tools": null,
    "model": "", "provider": "", "driver": "", "origin": "shipped", "file": ""}]}');

INSERT INTO advice (ticket, turn, role, run, text, given_at) VALUES (1, 0, 'lead-advise', 1, 'Begin small.', 1150);
