-- Memories: what agents of a project should know.

CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    text TEXT NOT NULL,
    files TEXT NOT NULL,
    labels TEXT NOT NULL,
    ticket INTEGER,
    created_at DOUBLE PRECISION NOT NULL,
    forgotten_at DOUBLE PRECISION
);

CREATE INDEX memories_of_project ON memories (project, id);

INSERT INTO counters (name, value) VALUES ('memory', 0);
