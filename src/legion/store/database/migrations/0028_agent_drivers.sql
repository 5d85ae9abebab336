-- The driver of a standing agent; empty: the default one.

ALTER TABLE agents ADD COLUMN driver TEXT NOT NULL DEFAULT '';
