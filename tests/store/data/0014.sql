-- A memory that a ticket taught.

INSERT INTO memories (id, project, text, files, labels, ticket, created_at, forgotten_at)
VALUES (1, 1, 'The till rings twice.', '["till/**"]', '["till"]', 1, 1900.0, NULL);
