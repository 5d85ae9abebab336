-- A race of the first ticket alone, decided, and the driver of its first run.

INSERT INTO race_lanes (ticket, race, origin, label, lines, findings, won, why, decided_at)
VALUES (1, 1, 1, 'codex', 12, NULL, 1, 'proven, and the smallest change (12 lines)', 1900.0);

UPDATE runs SET driver = 'codex' WHERE id = 1;
