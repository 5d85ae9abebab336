-- A token, and the facts of a question.

INSERT INTO tokens (hash, agent, ticket, run, issued_at, revoked_at)
VALUES ('00ff', 'a-manager', NULL, 2, 1210.0, 1300.0);

UPDATE questions SET facts = '{"tool": "Bash"}' WHERE id = 1;
