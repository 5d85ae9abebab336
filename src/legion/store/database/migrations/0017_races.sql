-- Races: several attempts of one ticket at once. Each lane is a ticket of its own. The driver of each run.

CREATE TABLE race_lanes (
    ticket INTEGER PRIMARY KEY REFERENCES tickets (id),
    race INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    label TEXT NOT NULL,
    lines INTEGER,
    findings INTEGER,
    won INTEGER,
    why TEXT NOT NULL,
    decided_at DOUBLE PRECISION
);

CREATE INDEX race_lanes_of_race ON race_lanes (race);

ALTER TABLE runs ADD COLUMN driver TEXT NOT NULL DEFAULT '';

INSERT INTO counters (name, value) VALUES ('race', 0);
