-- Whether runs get on: what is known of each, the steps that were taken, and attempts that a ticket passes over.

ALTER TABLE tickets ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;

CREATE TABLE watches (
    run INTEGER PRIMARY KEY REFERENCES runs (id),
    tree TEXT NOT NULL,
    tree_since INTEGER NOT NULL,
    tree_at DOUBLE PRECISION NOT NULL,
    idle_since DOUBLE PRECISION,
    cpu DOUBLE PRECISION NOT NULL,
    bytes BIGINT NOT NULL,
    processes TEXT NOT NULL
);

CREATE TABLE helps (
    run INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,
    action TEXT NOT NULL,
    rule TEXT NOT NULL,
    sign TEXT NOT NULL,
    why TEXT NOT NULL,
    advice TEXT NOT NULL,
    message TEXT NOT NULL,
    after INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    taken_at DOUBLE PRECISION,
    PRIMARY KEY (run, number)
);
