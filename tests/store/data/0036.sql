-- A sum of an epic, and the number of ended tickets of a project that is not there.

INSERT INTO spending_sums (kind, project, name, day, requests, failed, unpriced, input, output, cache_read, cache_write,
    usd, seconds)
VALUES ('epic', 1, 'doors', '2026-02-01', 9, 0, 0, 9000000000, 0, 0, 0, 3.0, 0.0);

INSERT INTO counters (name, value) VALUES ('ended/9/done', 3);
