-- Plans of goals: proposed tickets, the rounds that led to them, and the ticket that each approved one became. Budgets
-- of epics.

CREATE TABLE goals (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    source TEXT NOT NULL,
    goal TEXT NOT NULL,
    epic TEXT NOT NULL,
    team TEXT NOT NULL,
    model TEXT NOT NULL,
    budget DOUBLE PRECISION,
    may_ask INTEGER NOT NULL,
    about INTEGER,
    rounds INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    draft TEXT,
    findings TEXT NOT NULL,
    asked TEXT NOT NULL,
    guidance TEXT NOT NULL,
    reason TEXT NOT NULL,
    held_until DOUBLE PRECISION,
    conversation TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    moved_at DOUBLE PRECISION NOT NULL
);

CREATE INDEX goals_of_project ON goals (project, id);

CREATE TABLE goal_rounds (
    plan INTEGER NOT NULL REFERENCES goals (id),
    number INTEGER NOT NULL,
    author TEXT NOT NULL,
    run INTEGER,
    usable INTEGER NOT NULL,
    findings TEXT NOT NULL,
    message TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (plan, number)
);

CREATE TABLE goal_tickets (
    plan INTEGER NOT NULL,
    key TEXT NOT NULL,
    ticket INTEGER NOT NULL REFERENCES tickets (id),
    usd DOUBLE PRECISION,
    seconds DOUBLE PRECISION,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (plan, key)
);

CREATE UNIQUE INDEX goal_tickets_by_ticket ON goal_tickets (ticket);

CREATE TABLE epics (
    project INTEGER NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    budget DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, name)
);

ALTER TABLE runs ADD COLUMN plan INTEGER;

CREATE INDEX runs_of_plan ON runs (plan);

INSERT INTO counters (name, value) VALUES ('plan', 0);
