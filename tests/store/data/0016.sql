-- A ticket that a person works on together with its agent, and has submitted.

INSERT INTO attendances (ticket, mode, submitted, accepts, since) VALUES (3, 'person', 1, 0, 1900.0);
