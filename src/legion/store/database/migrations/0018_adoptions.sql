-- Adoptions: which ticket continues which conversation of the person's own agent program.

CREATE TABLE adoptions (
    ticket INTEGER PRIMARY KEY REFERENCES tickets (id),
    at DOUBLE PRECISION NOT NULL,
    conversation TEXT NOT NULL,
    source TEXT NOT NULL
);

CREATE UNIQUE INDEX adoptions_by_conversation ON adoptions (conversation);

CREATE INDEX adoptions_by_source ON adoptions (source);
