-- What a program that counts its own usage reported last, by conversation: only the difference to it is new.

CREATE TABLE usage_reports (
    conversation TEXT NOT NULL,
    model TEXT NOT NULL,
    run INTEGER NOT NULL,
    event INTEGER NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    usd DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (conversation, model)
);

-- Until now the sum of what was counted stood for it.
INSERT INTO usage_reports
SELECT runs.conversation, usage.model, MAX(usage.run), 1000000000, CAST(SUM(usage.input) AS BIGINT), CAST(SUM(usage.output) AS BIGINT),
    CAST(SUM(usage.cache_read) AS BIGINT), CAST(SUM(usage.cache_write) AS BIGINT), SUM(usage.usd)
FROM usage JOIN runs ON runs.id = usage.run
WHERE usage.provider = 'your own login' AND runs.conversation <> ''
GROUP BY runs.conversation, usage.model;
