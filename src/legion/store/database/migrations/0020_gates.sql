-- The person's gates and hands: which changes wait for the person, places in the merge queue, numbers of workers and
-- attempts that hold without a commit, a freeze of everything, and answered, archived mail.

ALTER TABLE tickets ADD COLUMN gate TEXT;

ALTER TABLE tickets ADD COLUMN place INTEGER NOT NULL DEFAULT 0;

ALTER TABLE projects ADD COLUMN workers INTEGER;

ALTER TABLE projects ADD COLUMN retries INTEGER;

ALTER TABLE projects ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0;

CREATE TABLE epic_gates (
    project INTEGER NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    gate TEXT NOT NULL,
    PRIMARY KEY (project, name)
);

ALTER TABLE mail ADD COLUMN reply_to INTEGER;

ALTER TABLE mail ADD COLUMN archived_at DOUBLE PRECISION;
