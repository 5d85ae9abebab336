-- Agents that call Legion: their tokens, tickets that they dispatch, and questions of every kind.

CREATE TABLE tokens (
    hash TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    ticket INTEGER,
    run INTEGER NOT NULL,
    issued_at DOUBLE PRECISION NOT NULL,
    revoked_at DOUBLE PRECISION
);

CREATE INDEX tokens_of_run ON tokens (run) WHERE revoked_at IS NULL;

CREATE INDEX tokens_of_agent ON tokens (agent) WHERE revoked_at IS NULL;

ALTER TABLE tickets ADD COLUMN dispatcher TEXT NOT NULL DEFAULT '';

ALTER TABLE tickets ADD COLUMN tools TEXT;

CREATE INDEX tickets_of_dispatcher ON tickets (dispatcher, id) WHERE dispatcher <> '';

-- A question may now be of many kinds, and of an agent without a ticket; its answer is one of its choices.
CREATE TABLE questions_of_every_kind (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    project INTEGER NOT NULL,
    agent TEXT NOT NULL,
    ticket INTEGER,
    run INTEGER,
    words TEXT NOT NULL,
    facts TEXT NOT NULL,
    choices TEXT NOT NULL,
    fallback TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL,
    deadline DOUBLE PRECISION NOT NULL,
    settled_at DOUBLE PRECISION,
    settled_by TEXT,
    choice TEXT NOT NULL,
    why TEXT NOT NULL
);

INSERT INTO questions_of_every_kind (id, key, kind, project, agent, ticket, run, words, facts, choices, fallback,
    asked_at, deadline, settled_at, settled_by, choice, why)
SELECT id, key, 'permission', project, '', ticket, run, words, '{}', '["yes", "no"]', 'no', asked_at, deadline,
    settled_at, CASE WHEN settled_at IS NULL THEN NULL ELSE 'person' END, CASE allowed WHEN 1 THEN 'yes' WHEN 0 THEN 'no' ELSE '' END, why
FROM questions;

DROP TABLE questions;

ALTER TABLE questions_of_every_kind RENAME TO questions;

CREATE UNIQUE INDEX questions_by_key ON questions (key);

CREATE INDEX questions_open ON questions (id) WHERE settled_at IS NULL;
