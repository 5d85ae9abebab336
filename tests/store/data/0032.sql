-- A machine whose disk is full, and which lost runs twice.

UPDATE machines SET disk_free_mb = 12, disk_floor_mb = 200, lost = 2, lost_at = 5.0 WHERE id = 1;
