-- A ticket that an agent holds, and a plan that is wanted.

UPDATE counters SET value = 1 WHERE name = 'holding';

UPDATE agents SET plan = 'wanted' WHERE number = 1;

INSERT INTO holdings (ticket, number, agent, planted, submitted, since)
VALUES (3, 1, 'a-manager', 0, 0, 1700.0);
