-- Specifications that are written before a plan, and tickets that start only after a certain result of another.

ALTER TABLE goals ADD COLUMN spec INTEGER NOT NULL DEFAULT 0;

ALTER TABLE goals ADD COLUMN keep_docs INTEGER NOT NULL DEFAULT 0;

CREATE TABLE goal_documents (
    plan INTEGER NOT NULL REFERENCES goals (id),
    stage TEXT NOT NULL,
    text TEXT NOT NULL,
    run INTEGER,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (plan, stage)
);

CREATE TABLE conditions (
    ticket INTEGER PRIMARY KEY,
    about TEXT NOT NULL,
    result TEXT NOT NULL,
    word TEXT NOT NULL,
    negated INTEGER NOT NULL
);
