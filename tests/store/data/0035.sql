-- A pinned note for agents, and an epic with a budget and a gate.

INSERT INTO notes (id, project, kind, text, author, ticket, created_at, closed_at, closed_by, outcome, files, labels,
    pinned, accepted_at, accepted_by)
VALUES (90, 1, 'memory', 'Lock the doors.', 'root', NULL, 2800.0, NULL, '', '', '[]', '[]', 1, NULL, '');

INSERT INTO epics (project, name, budget, gate) VALUES (1, 'doors', 2.0, 'auto');
