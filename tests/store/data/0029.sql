-- A ticket whose run is being interrupted for a person.

INSERT INTO attendances (ticket, mode, submitted, accepts, since, alone, stage)
VALUES (1, 'wheel', 0, 0, 2000.0, 1, 'cut');
