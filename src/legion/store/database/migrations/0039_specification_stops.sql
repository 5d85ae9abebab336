-- How much of a specification is written, why a rule chose that, and whether it waits for the person.

ALTER TABLE plans ADD COLUMN short INTEGER NOT NULL DEFAULT 0;

ALTER TABLE plans ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;

ALTER TABLE plans ADD COLUMN depth TEXT NOT NULL DEFAULT '';
