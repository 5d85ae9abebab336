-- What proves which criterion, and the held-out acceptance that a ticket has to pass.

ALTER TABLE tickets ADD COLUMN bound TEXT NOT NULL DEFAULT '[]';

ALTER TABLE tickets ADD COLUMN acceptance TEXT NOT NULL DEFAULT '[]';
