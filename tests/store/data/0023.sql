-- A lesson that a briefing carried, and a routine that ran once.

INSERT INTO memories
    (id, project, text, files, labels, ticket, created_at, forgotten_at, lesson, accepted_at, accepted_by)
VALUES (2, 1, 'Attempt 1 failed: the till.', '["till/**"]', '[]', 1, 2200.0, NULL, 1, 2300.0, 'root');

INSERT INTO recalled (memory, ticket, at) VALUES (2, 2, 2400.0);

INSERT INTO routines
    (id, project, version, starts, template, text, variables, team, budget, created_at, removed_at, due_at, seen,
     tags, last_tickets, last_at, last_result, runs)
VALUES (1, 1, 3, 'every weekday 07:00', '', 'Count the till.', '{}', '', 2.5, 2500.0, NULL, 2600.0, 4,
    '[]', '[3]', 2550.0, 'ticket 3', 1);
