-- Sessions: several targets of one repository, each bound to a branch. A session is a project of its own.

ALTER TABLE projects ADD COLUMN session TEXT NOT NULL DEFAULT '';

ALTER TABLE projects ADD COLUMN chosen INTEGER NOT NULL DEFAULT 0;

ALTER TABLE projects ADD COLUMN base_commit TEXT;

DROP INDEX projects_once;

CREATE UNIQUE INDEX projects_once ON projects (common_dir, session) WHERE removed_at IS NULL;
