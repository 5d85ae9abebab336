-- Notes of leaders, and how far each leader has read the board.

CREATE TABLE notes (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    author TEXT NOT NULL,
    ticket INTEGER,
    created_at DOUBLE PRECISION NOT NULL,
    closed_at DOUBLE PRECISION,
    closed_by TEXT NOT NULL,
    outcome TEXT NOT NULL
);

CREATE INDEX notes_of_project ON notes (project, id);

INSERT INTO counters (name, value) VALUES ('note', 0);

ALTER TABLE goals ADD COLUMN dispatcher TEXT NOT NULL DEFAULT '';

CREATE TABLE leaders (
    agent INTEGER PRIMARY KEY,
    seen INTEGER NOT NULL,
    shown INTEGER NOT NULL,
    noticed INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    compacted INTEGER NOT NULL,
    handovers INTEGER NOT NULL
);
