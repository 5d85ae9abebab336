-- An agent whose turn was interrupted for a person.

INSERT INTO agent_wheels (agent, owes, since) VALUES (1, 1, 2000.0);
