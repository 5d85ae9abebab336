-- Tickets at which a person sits: at the wheel of an agent that otherwise works alone, or from the start.

CREATE TABLE attendances (
    ticket INTEGER PRIMARY KEY,
    mode TEXT NOT NULL,
    submitted INTEGER NOT NULL,
    accepts INTEGER NOT NULL,
    since DOUBLE PRECISION NOT NULL
);
