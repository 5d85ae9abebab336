-- The definitions that tickets change, the order after a lost conflict, tickets that begin on another's
-- change, and proofs that stay.

ALTER TABLE tickets ADD COLUMN claims TEXT NOT NULL DEFAULT '[]';

ALTER TABLE tickets ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tickets ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tickets ADD COLUMN behind INTEGER;

ALTER TABLE tickets ADD COLUMN retires TEXT NOT NULL DEFAULT '[]';

ALTER TABLE tickets ADD COLUMN retired TEXT NOT NULL DEFAULT '';

CREATE INDEX tickets_with_proofs ON tickets (project, id) WHERE live = 0 AND proofs <> '[]';
