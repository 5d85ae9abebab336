-- Whether the goal of a plan is held against what landed, once all its tickets have ended.

ALTER TABLE plans ADD COLUMN reads INTEGER NOT NULL DEFAULT 0;
