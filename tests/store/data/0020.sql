-- An epic whose changes wait for the person, a project with three workers that is frozen, a message that was archived.

INSERT INTO epic_gates (project, name, gate) VALUES (1, 'till', 'person');

UPDATE projects SET workers = 3, retries = 2, frozen = 1 WHERE id = 1;

UPDATE tickets SET gate = 'auto', place = -2 WHERE id = 1;

UPDATE mail SET archived_at = 1950.0, reply_to = 1 WHERE number = 1;
