-- Agents, their mail and a run of one.

UPDATE counters SET value = 2 WHERE name = 'agent';

UPDATE counters SET value = 2 WHERE name = 'mail';

INSERT INTO agents (number, id, project, parent, name, role, task, model, tools, budget, headcount, depth, tier,
    base, owes, held_until, held_why, hired_at, fired_at)
VALUES (1, 'a-manager', 1, 'root', 'Ada', 'manager', 'Lead.', 'opus', NULL, 5.0, 3, 2, 'opus', 'aaaa', 0, NULL, '',
    1050.0, NULL);

INSERT INTO agents (number, id, project, parent, name, role, task, model, tools, budget, headcount, depth, tier,
    base, owes, held_until, held_why, hired_at, fired_at)
VALUES (2, 'a-reader', 1, 'a-manager', 'Ben', '', 'Read.', '', '["Read"]', 1.0, 0, 0, 'haiku', NULL, 1, 1600.0,
    'limit', 1060.0, 1700.0);

INSERT INTO mail (number, id, sender, recipient, kind, text, sent_at, delivery, batch, heard_at, about)
VALUES (1, 'm1', 'root', 'a-manager', 'task', 'Lead.', 1050.0, 'heard', 'p1', 1070.0, '');

INSERT INTO mail (number, id, sender, recipient, kind, text, sent_at, delivery, batch, heard_at, about)
VALUES (2, 'm2', 'a-manager', 'root', 'result', 'I lead.', 1080.0, 'waiting', '', NULL, '');

INSERT INTO calls (caller, request, answer, at)
VALUES ('a-manager', 'again', '{"id": "a-reader"}', 1060.0);

INSERT INTO runs (id, project, ticket, agent, attempt, generation, started_at, ended_at, outcome, detail, saved,
    conversation, access, prompt)
VALUES (99, 1, NULL, 1, 1, 1, 1210.0, 1300.0, 'finished', '', 'aaaa', 'a-manager', 'anthropic', 'p1');
