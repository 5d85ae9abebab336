-- A program counted more tokens in one conversation than a small number holds.

INSERT INTO usage_reports (conversation, model, run, event, input, output, cache_read, cache_write, usd)
VALUES ('c-1', 'counted', 1, 4, 9000000000, 12, 0, 0, 1.5);
