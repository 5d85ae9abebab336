-- The team of a ticket as it was at its dispatch, its labels, and what those said who advised.

ALTER TABLE tickets ADD COLUMN team TEXT NOT NULL DEFAULT '';

ALTER TABLE tickets ADD COLUMN crew TEXT NOT NULL DEFAULT '';

ALTER TABLE tickets ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';

CREATE TABLE crews (
    digest TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE advice (
    ticket INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    role TEXT NOT NULL,
    run INTEGER NOT NULL,
    text TEXT NOT NULL,
    given_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (ticket, turn, role)
);
