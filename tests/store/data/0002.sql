-- What models cost and what they asked.

UPDATE counters SET value = 1 WHERE name = 'question';

UPDATE tickets SET asks = 1, budget = 2.5 WHERE id = 1;

UPDATE runs SET conversation = 'one-talk', access = 'anthropic' WHERE id = 1;

UPDATE runs SET conversation = 'one-talk', access = 'anthropic' WHERE id = 2;

INSERT INTO usage (run, provider, model, day, requests, failed, unpriced, input, output, cache_read, cache_write,
    usd, seconds)
VALUES (2, 'anthropic', 'large', '2026-01-02', 3, 1, 0, 9000000000, 20, 30, 40, 1.5, 12.5);

INSERT INTO readings (source, file, place)
VALUES ('gateway', '2026-01-02.jsonl', 9000000000);

INSERT INTO limits (provider, at, status, span, utilization, resets_at)
VALUES ('anthropic', 1250.0, 429, 'five hours', 0.9, 5000.0);

INSERT INTO questions (id, key, project, ticket, run, words, asked_at, deadline, settled_at, allowed, why)
VALUES (1, 'q', 1, 1, 2, 'May it?', 1220.0, 4820.0, 1230.0, 1, '');
