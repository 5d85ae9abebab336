-- Standing agents whose conversation a person takes over.

CREATE TABLE agent_wheels (
    agent INTEGER PRIMARY KEY,
    owes INTEGER NOT NULL,
    since DOUBLE PRECISION NOT NULL
);
