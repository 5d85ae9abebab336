-- Forges: where the issues and pull requests of a project live, and what Legion did there.

CREATE TABLE forges (
    project INTEGER PRIMARY KEY REFERENCES projects (id),
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    repository TEXT NOT NULL,
    branch TEXT NOT NULL,
    key_from TEXT NOT NULL,
    key_value TEXT NOT NULL,
    login TEXT NOT NULL,
    label TEXT NOT NULL,
    milestone TEXT NOT NULL,
    assignee TEXT NOT NULL,
    identity TEXT NOT NULL,
    problem TEXT NOT NULL,
    problem_since DOUBLE PRECISION,
    wait_until DOUBLE PRECISION,
    synced_at DOUBLE PRECISION,
    added_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE forge_issues (
    project INTEGER NOT NULL,
    number INTEGER NOT NULL,
    ticket INTEGER,
    stage TEXT NOT NULL,
    branch TEXT NOT NULL,
    claim TEXT NOT NULL,
    comment BIGINT,
    wrote TEXT NOT NULL,
    request TEXT NOT NULL,
    why TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, number)
);

CREATE INDEX forge_issues_by_ticket ON forge_issues (ticket);

CREATE TABLE forge_pulls (
    ticket INTEGER PRIMARY KEY,
    project INTEGER NOT NULL,
    stage TEXT NOT NULL,
    branch TEXT NOT NULL,
    base TEXT NOT NULL,
    tested TEXT NOT NULL,
    pushed TEXT NOT NULL,
    number INTEGER,
    url TEXT NOT NULL,
    wrote TEXT NOT NULL,
    foreign_commit TEXT NOT NULL,
    merged TEXT NOT NULL,
    ci TEXT NOT NULL,
    ruling TEXT NOT NULL,
    note TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);

CREATE INDEX forge_pulls_of_project ON forge_pulls (project, stage);

CREATE TABLE forge_feedback (
    project INTEGER NOT NULL,
    source TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    thread BIGINT,
    answered INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, source)
);

CREATE TABLE forge_deliveries (
    id TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
