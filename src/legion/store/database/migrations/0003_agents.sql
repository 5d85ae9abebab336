-- Agents that stand, their mail, the calls they repeat; runs are a ticket's or an agent's.

CREATE TABLE agents (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    project INTEGER NOT NULL REFERENCES projects (id),
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    tools TEXT,
    budget DOUBLE PRECISION,
    headcount INTEGER,
    depth INTEGER,
    tier TEXT NOT NULL,
    base TEXT,
    owes INTEGER NOT NULL,
    held_until DOUBLE PRECISION,
    held_why TEXT NOT NULL,
    hired_at DOUBLE PRECISION NOT NULL,
    fired_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX agents_by_id ON agents (id);

CREATE UNIQUE INDEX agents_by_name ON agents (name) WHERE fired_at IS NULL;

CREATE INDEX agents_of_parent ON agents (parent, number);

CREATE TABLE mail (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    sent_at DOUBLE PRECISION NOT NULL,
    delivery TEXT NOT NULL,
    batch TEXT NOT NULL,
    heard_at DOUBLE PRECISION,
    about TEXT NOT NULL
);

CREATE UNIQUE INDEX mail_by_id ON mail (id);

CREATE INDEX mail_to ON mail (recipient, number);

CREATE INDEX mail_from ON mail (sender, number);

CREATE INDEX mail_open ON mail (recipient, number) WHERE delivery IN ('waiting', 'offered');

-- Requests of agents and of the person about agents, so that a repeated one gets the first answer.
CREATE TABLE calls (
    caller TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (caller, request)
);

CREATE TABLE new_runs (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    ticket INTEGER REFERENCES tickets (id),
    agent INTEGER REFERENCES agents (number),
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    outcome TEXT,
    detail TEXT NOT NULL,
    saved TEXT,
    conversation TEXT NOT NULL,
    access TEXT NOT NULL,
    prompt TEXT NOT NULL
);

INSERT INTO new_runs
SELECT runs.id, tickets.project, runs.ticket, NULL, runs.attempt, runs.generation, runs.started_at, runs.ended_at,
    runs.outcome, runs.detail, runs.saved, runs.conversation, runs.access, ''
FROM runs JOIN tickets ON tickets.id = runs.ticket;

DROP TABLE runs;

ALTER TABLE new_runs RENAME TO runs;

CREATE INDEX runs_of_ticket ON runs (ticket, id);

CREATE INDEX runs_of_agent ON runs (agent, id) WHERE agent IS NOT NULL;

CREATE INDEX runs_active ON runs (ended_at, id) WHERE ended_at IS NULL;

INSERT INTO counters (name, value) VALUES ('agent', 0), ('mail', 0);
