-- A promise that was kept, and a leader that has read the board up to an event.

INSERT INTO notes (id, project, kind, text, author, ticket, created_at, closed_at, closed_by, outcome)
VALUES (1, 1, 'promise', 'The doors open on Sunday.', 'root', 1, 2000.0, 2100.0, 'root', 'They did.');

INSERT INTO leaders (agent, seen, shown, noticed, tokens, compacted, handovers)
VALUES (1, 3, 4, 4, 52000, 0, 2);
