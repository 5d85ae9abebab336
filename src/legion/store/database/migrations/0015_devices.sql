-- Devices: browsers that may use the page. A row is made with a one-time code, and gets its secret when the code is used.

CREATE TABLE devices (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    code_ends_at DOUBLE PRECISION NOT NULL,
    secret_hash TEXT,
    host TEXT NOT NULL,
    read_only INTEGER NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION,
    revoked_at DOUBLE PRECISION
);

CREATE UNIQUE INDEX devices_by_code ON devices (code_hash);

CREATE UNIQUE INDEX devices_by_secret ON devices (secret_hash);

INSERT INTO counters (name, value) VALUES ('device', 0);
