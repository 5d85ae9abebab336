-- Work that flows: tickets that undo others.

ALTER TABLE tickets ADD COLUMN undoes INTEGER;

CREATE INDEX tickets_undoing ON tickets (undoes) WHERE undoes IS NOT NULL;
