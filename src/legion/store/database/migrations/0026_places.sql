-- Which labels a ticket asks of its machine, why a job is where it is, and which head may write.

ALTER TABLE tickets ADD COLUMN "on" TEXT NOT NULL DEFAULT '[]';

ALTER TABLE claims ADD COLUMN why TEXT NOT NULL DEFAULT '';

CREATE TABLE head_leases (
    id INTEGER PRIMARY KEY,
    holder TEXT NOT NULL,
    generation INTEGER NOT NULL,
    until DOUBLE PRECISION NOT NULL
);
