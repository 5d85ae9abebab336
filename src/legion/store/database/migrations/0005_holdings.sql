-- Tickets that standing agents have claimed, plans that wait for approval, and agents that are asked to leave.

CREATE TABLE holdings (
    ticket INTEGER PRIMARY KEY REFERENCES tickets (id),
    number INTEGER NOT NULL,
    agent TEXT NOT NULL,
    planted INTEGER NOT NULL,
    submitted INTEGER NOT NULL,
    since DOUBLE PRECISION NOT NULL
);

CREATE INDEX holdings_of_agent ON holdings (agent, number);

ALTER TABLE agents ADD COLUMN plan TEXT NOT NULL DEFAULT 'none';

ALTER TABLE agents ADD COLUMN leaving TEXT NOT NULL DEFAULT '';

INSERT INTO counters (name, value) VALUES ('holding', 0);
