-- What proves which criterion, the held-out acceptance that a ticket has to pass, and whether it climbs the ladder.

ALTER TABLE tickets ADD COLUMN bound TEXT NOT NULL DEFAULT '[]';

ALTER TABLE tickets ADD COLUMN acceptance TEXT NOT NULL DEFAULT '[]';

ALTER TABLE tickets ADD COLUMN climbs INTEGER NOT NULL DEFAULT 0;
