-- Whose run it is and which part of the work, and what readers said about changes.

ALTER TABLE runs ADD COLUMN role TEXT NOT NULL DEFAULT '';

ALTER TABLE runs ADD COLUMN part TEXT NOT NULL DEFAULT 'build';

ALTER TABLE tickets ADD COLUMN review TEXT;

CREATE TABLE verdicts (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    reader TEXT NOT NULL,
    round INTEGER NOT NULL,
    base TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    binding INTEGER NOT NULL,
    why TEXT NOT NULL,
    refused INTEGER NOT NULL,
    complaint TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL,
    given_at DOUBLE PRECISION,
    verdict TEXT,
    notes TEXT NOT NULL
);

CREATE INDEX verdicts_of_ticket ON verdicts (ticket, id);

CREATE INDEX verdicts_open ON verdicts (ticket) WHERE given_at IS NULL;

INSERT INTO counters (name, value) VALUES ('verdict', 0);
