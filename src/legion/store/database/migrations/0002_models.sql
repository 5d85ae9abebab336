-- Agents that talk to models: their conversations, what they cost, what they ask, and the limits they meet.

ALTER TABLE runs ADD COLUMN conversation TEXT NOT NULL DEFAULT '';

ALTER TABLE runs ADD COLUMN access TEXT NOT NULL DEFAULT '';

ALTER TABLE tickets ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tickets ADD COLUMN budget DOUBLE PRECISION;

CREATE TABLE usage (
    run INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    day TEXT NOT NULL,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    usd DOUBLE PRECISION NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run, provider, model, day)
);

CREATE TABLE readings (
    source TEXT PRIMARY KEY,
    file TEXT NOT NULL,
    place BIGINT NOT NULL
);

CREATE TABLE limits (
    provider TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    status INTEGER NOT NULL,
    span TEXT NOT NULL,
    utilization DOUBLE PRECISION,
    resets_at DOUBLE PRECISION
);

CREATE TABLE questions (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    project INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    run INTEGER NOT NULL,
    words TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL,
    deadline DOUBLE PRECISION NOT NULL,
    settled_at DOUBLE PRECISION,
    allowed INTEGER,
    why TEXT NOT NULL
);

CREATE UNIQUE INDEX questions_by_key ON questions (key);

CREATE INDEX questions_open ON questions (id) WHERE settled_at IS NULL;

INSERT INTO counters (name, value) VALUES ('question', 0);
