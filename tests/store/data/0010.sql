-- A run that was helped, and a ticket that passed over attempts.

UPDATE tickets SET skipped = 3 WHERE id = 2;

INSERT INTO watches (run, tree, tree_since, tree_at, idle_since, cpu, bytes, processes)
VALUES (1, 'dddd', 12, 1450.0, 1460.5, 0.25, 9000000000, 'abcd');

INSERT INTO helps (run, number, action, rule, sign, why, advice, message, after, at, taken_at)
VALUES (1, 1, 'nudge', 'loops-are-broken', 'loops: 5 times', 'it made the same call 5 times', 'Stop.', 'm-1', 12,
    1455.0, 1455.5);

INSERT INTO helps (run, number, action, rule, sign, why, advice, message, after, at, taken_at)
VALUES (1, 2, 'end', 'loops-are-broken', 'loops: 5 times', 'it made the same call 5 times', 'Stop.', 'm-2', 30,
    1470.0, NULL);
