-- A plan that was sent back with a reason.

INSERT INTO plans (ticket, stage, text, decided_by, decided_at, why)
VALUES (3, 'wanted', 'First the hinges.', 'root', 1800.0, 'Handles first.');
