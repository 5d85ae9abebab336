-- Lessons: memories won from failures, which briefings carried them, and routines: tickets that begin by time or event.

ALTER TABLE memories ADD COLUMN lesson INTEGER NOT NULL DEFAULT 0;

ALTER TABLE memories ADD COLUMN accepted_at DOUBLE PRECISION;

ALTER TABLE memories ADD COLUMN accepted_by TEXT NOT NULL DEFAULT '';

CREATE TABLE recalled (
    memory INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (memory, ticket)
);

CREATE TABLE routines (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    version INTEGER NOT NULL,
    starts TEXT NOT NULL,
    template TEXT NOT NULL,
    text TEXT NOT NULL,
    variables TEXT NOT NULL,
    team TEXT NOT NULL,
    budget DOUBLE PRECISION,
    created_at DOUBLE PRECISION NOT NULL,
    removed_at DOUBLE PRECISION,
    due_at DOUBLE PRECISION,
    seen INTEGER NOT NULL,
    tags TEXT NOT NULL,
    last_tickets TEXT NOT NULL,
    last_at DOUBLE PRECISION,
    last_result TEXT NOT NULL,
    runs INTEGER NOT NULL
);

CREATE INDEX routines_of_project ON routines (project, id);

INSERT INTO counters (name, value) VALUES ('routine', 0);
