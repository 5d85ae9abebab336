-- Tickets whose agents may only read until a plan of theirs is approved; who hired an agent, whoever adopted it, and
-- whether it only leads.

CREATE TABLE plans (
    ticket INTEGER PRIMARY KEY REFERENCES tickets (id),
    stage TEXT NOT NULL,
    text TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at DOUBLE PRECISION,
    why TEXT NOT NULL
);

ALTER TABLE agents ADD COLUMN hirer TEXT NOT NULL DEFAULT '';

ALTER TABLE agents ADD COLUMN delegates INTEGER NOT NULL DEFAULT 0;
