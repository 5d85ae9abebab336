-- Machines that dial in to the head, their invitations, and the runs that were given to them.

CREATE TABLE machines (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    slots INTEGER NOT NULL,
    state TEXT NOT NULL,
    token_hash TEXT,
    boot TEXT NOT NULL,
    version TEXT NOT NULL,
    protocol INTEGER NOT NULL,
    toolchain TEXT NOT NULL,
    quiet_hours TEXT NOT NULL,
    mirrors TEXT NOT NULL,
    heard_at DOUBLE PRECISION,
    joined_at DOUBLE PRECISION NOT NULL,
    removed_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX machines_by_token ON machines (token_hash);

CREATE UNIQUE INDEX machines_by_name ON machines (name) WHERE removed_at IS NULL;

CREATE TABLE machine_invitations (
    id INTEGER PRIMARY KEY,
    code_hash TEXT NOT NULL,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    slots INTEGER NOT NULL,
    quiet_hours TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    ends_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX machine_invitations_by_code ON machine_invitations (code_hash);

CREATE TABLE machine_runs (
    run INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    project INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    machine INTEGER NOT NULL REFERENCES machines (id),
    state TEXT NOT NULL,
    placed_at DOUBLE PRECISION NOT NULL,
    taken_at DOUBLE PRECISION,
    taken_by TEXT NOT NULL DEFAULT '',
    beats INTEGER NOT NULL DEFAULT 0,
    ended_at DOUBLE PRECISION,
    why TEXT NOT NULL
);

CREATE INDEX machine_runs_open ON machine_runs (machine) WHERE ended_at IS NULL;

CREATE UNIQUE INDEX machine_runs_by_name ON machine_runs (name);

CREATE TABLE machine_commands (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    machine INTEGER NOT NULL,
    kind TEXT NOT NULL,
    facts TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL
);

ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';

ALTER TABLE receipts ADD COLUMN machine TEXT NOT NULL DEFAULT '';

INSERT INTO counters (name, value) VALUES ('machine', 0);

INSERT INTO counters (name, value) VALUES ('machine_invitation', 0);

INSERT INTO counters (name, value) VALUES ('machine_command', 0);
