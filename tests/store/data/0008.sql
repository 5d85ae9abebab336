-- What a reviewer found, and its run.

UPDATE counters SET value = 1 WHERE name = 'verdict';

UPDATE tickets SET review = 'always' WHERE id = 2;

INSERT INTO runs (id, project, ticket, agent, attempt, generation, started_at, ended_at, outcome, detail, saved,
    conversation, access, prompt, role, part)
VALUES (98, 1, 1, NULL, 1, 1, 1310.0, 1320.0, 'finished', '', NULL, 'own-talk', 'anthropic', '', 'reviewer', 'read');

INSERT INTO verdicts (id, project, ticket, attempt, reader, round, base, commit_id, binding, why, refused, complaint,
    asked_at, given_at, verdict, notes)
VALUES (1, 1, 1, 1, 'reviewer', 1, 'bbbb', 'aaaa', 1, 'every change is read', 1, 'it holds no verdict', 1305.0,
    1320.0, '{"ruling": "approve", "summary": "Fine.", "read": ["till.py"], "findings": [{"weight": "nit",
    "file": "till.py", "line": 3, "text": "A name.", "id": 1, "settled": false}], "settled": [],
    "criteria": [{"number": 1, "met": true, "why": "line 3"}]}', '[]');
