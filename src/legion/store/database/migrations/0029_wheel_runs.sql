-- The run that a person may have interrupted to take over its conversation, and how far that is.

ALTER TABLE attendances ADD COLUMN alone INTEGER;

ALTER TABLE attendances ADD COLUMN stage TEXT NOT NULL DEFAULT 'asked';

ALTER TABLE agent_wheels ADD COLUMN alone INTEGER;

ALTER TABLE agent_wheels ADD COLUMN stage TEXT NOT NULL DEFAULT 'asked';
