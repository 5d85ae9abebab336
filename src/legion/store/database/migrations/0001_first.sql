-- The first schema. One text for SQLite and Postgres: numbers are given by `counters`, flags are 0 and 1,
-- JSON and long texts are TEXT, times are seconds. A statement ends with a semicolon at the end of a line.

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);

INSERT INTO counters (name, value)
VALUES ('event', 0), ('project', 0), ('ticket', 0), ('run', 0), ('claim', 0), ('receipt', 0), ('landing', 0);

CREATE TABLE events (
    n INTEGER PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL,
    project INTEGER,
    ticket INTEGER,
    data TEXT NOT NULL
);

CREATE INDEX events_of_project ON events (project, n);

CREATE INDEX events_of_ticket ON events (ticket, n);

CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    root TEXT NOT NULL,
    common_dir TEXT NOT NULL,
    branch TEXT NOT NULL,
    worktrees TEXT NOT NULL,
    paused INTEGER NOT NULL,
    config_text TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    config_origin TEXT NOT NULL,
    target TEXT NOT NULL,
    baseline_commit TEXT,
    baseline_verdict TEXT,
    person_tip TEXT,
    person_absorbed TEXT,
    person_refused TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    removed_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX projects_once ON projects (common_dir) WHERE removed_at IS NULL;

CREATE TABLE trusted (
    project INTEGER NOT NULL REFERENCES projects (id),
    hash TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, hash)
);

CREATE TABLE requests (
    project INTEGER NOT NULL REFERENCES projects (id),
    request TEXT NOT NULL,
    answer TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, request)
);

-- What moves. `live` is 1 while the ticket is neither ended nor dropped.
CREATE TABLE tickets (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    live INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    spared INTEGER NOT NULL,
    title TEXT NOT NULL,
    after TEXT NOT NULL,
    checkpoint INTEGER NOT NULL,
    epic TEXT NOT NULL,
    priority INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    driver TEXT NOT NULL,
    model TEXT NOT NULL,
    parked TEXT,
    base TEXT,
    plant TEXT,
    change_base TEXT,
    change_commit TEXT,
    landed TEXT,
    unchecked INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    moved_at DOUBLE PRECISION NOT NULL,
    dropped_at DOUBLE PRECISION,
    files TEXT NOT NULL,
    proofs TEXT NOT NULL,
    command TEXT NOT NULL,
    reason TEXT NOT NULL,
    feedback TEXT NOT NULL
);

-- The flag leads its own partial index, else SQLite walks the whole table to get the order of ids for nothing.
CREATE INDEX tickets_live ON tickets (live, id) WHERE live = 1;

CREATE INDEX tickets_ended ON tickets (live, moved_at, id) WHERE live = 0;

CREATE INDEX tickets_ended_of_project ON tickets (project, live, moved_at, id) WHERE live = 0;

CREATE INDEX tickets_by_state ON tickets (project, state) WHERE dropped_at IS NULL;

-- The long texts of a wish, apart from what moves: they are written once and read by those who need them.
CREATE TABLE wishes (
    ticket INTEGER PRIMARY KEY REFERENCES tickets (id),
    text TEXT NOT NULL,
    context TEXT NOT NULL,
    criteria TEXT NOT NULL,
    plan TEXT NOT NULL
);

-- The same edges as `tickets.after`, to be read from both ends.
CREATE TABLE edges (
    ticket INTEGER NOT NULL REFERENCES tickets (id),
    after INTEGER NOT NULL REFERENCES tickets (id),
    PRIMARY KEY (ticket, after)
);

CREATE INDEX edges_backwards ON edges (after, ticket);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    ticket INTEGER NOT NULL REFERENCES tickets (id),
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    outcome TEXT,
    detail TEXT NOT NULL,
    saved TEXT
);

CREATE INDEX runs_of_ticket ON runs (ticket, id);

CREATE INDEX runs_active ON runs (ended_at, id) WHERE ended_at IS NULL;

CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    machine TEXT NOT NULL,
    until DOUBLE PRECISION,
    active INTEGER NOT NULL,
    claimed_at DOUBLE PRECISION NOT NULL,
    finished_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX claims_by_generation ON claims (kind, subject, generation);

CREATE UNIQUE INDEX claims_one_at_a_time ON claims (kind, subject) WHERE active = 1;

CREATE INDEX claims_active ON claims (active, id) WHERE active = 1;

CREATE TABLE receipts (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    ticket INTEGER REFERENCES tickets (id),
    name TEXT NOT NULL,
    command TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    verdict TEXT NOT NULL,
    exit_code INTEGER,
    duration DOUBLE PRECISION NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    tail TEXT NOT NULL,
    output TEXT NOT NULL,
    digest TEXT NOT NULL
);

CREATE INDEX receipts_for_tree ON receipts (project, tree, id);

CREATE INDEX receipts_for_commit ON receipts (project, commit_id, id);

CREATE INDEX receipts_of_ticket ON receipts (ticket, id);

CREATE TABLE landings (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES projects (id),
    base TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    tickets TEXT NOT NULL,
    opened_at DOUBLE PRECISION NOT NULL,
    closed_at DOUBLE PRECISION,
    landed INTEGER
);

CREATE INDEX landings_of_project ON landings (project, id);

CREATE INDEX landings_open ON landings (project, id) WHERE closed_at IS NULL;
