-- Who trusts a check that was not shown to go red when the code is broken.

ALTER TABLE receipts ADD COLUMN trusted TEXT NOT NULL DEFAULT '';
