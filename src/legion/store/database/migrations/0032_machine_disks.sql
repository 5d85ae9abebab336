-- The disk of a machine, and how often it lost runs in a row.

ALTER TABLE machines ADD COLUMN disk_free_mb INTEGER;
ALTER TABLE machines ADD COLUMN disk_floor_mb INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN lost_at DOUBLE PRECISION;
