-- Rewinds: which conversation began as a copy of which, and where.

CREATE TABLE rewinds (
    id INTEGER PRIMARY KEY,
    ticket INTEGER NOT NULL REFERENCES tickets (id),
    at DOUBLE PRECISION NOT NULL,
    moment TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (id),
    conversation TEXT NOT NULL,
    source TEXT NOT NULL,
    point TEXT NOT NULL
);

CREATE UNIQUE INDEX rewinds_by_conversation ON rewinds (conversation);

CREATE INDEX rewinds_of_ticket ON rewinds (ticket, id);

INSERT INTO counters (name, value) VALUES ('rewind', 0);
