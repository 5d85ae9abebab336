-- Which labels a ticket asks of its machine, and why a job is where it is.

ALTER TABLE tickets ADD COLUMN "on" TEXT NOT NULL DEFAULT '[]';

ALTER TABLE claims ADD COLUMN why TEXT NOT NULL DEFAULT '';
