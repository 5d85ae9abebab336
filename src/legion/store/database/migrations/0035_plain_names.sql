-- One table where there were two for one thing, and names that say what a table holds. Every row is kept.

-- Notes: memories and lessons are kinds of them. Where a project had both, memories get new numbers above all that were
-- given out, so that no old number means another note.
ALTER TABLE notes ADD COLUMN files TEXT NOT NULL DEFAULT '[]';

ALTER TABLE notes ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';

ALTER TABLE notes ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;

ALTER TABLE notes ADD COLUMN accepted_at DOUBLE PRECISION;

ALTER TABLE notes ADD COLUMN accepted_by TEXT NOT NULL DEFAULT '';

INSERT INTO counters (name, value)
SELECT 'moved', CASE WHEN noted = 0 THEN 0 WHEN noted > remembered THEN noted ELSE remembered END
FROM (
    SELECT (
        SELECT MAX(n) FROM (
            SELECT value AS n FROM counters WHERE name = 'note' UNION ALL SELECT MAX(id) AS n FROM notes
        ) AS numbers
    ) AS noted, (
        SELECT MAX(n) FROM (
            SELECT value AS n FROM counters WHERE name = 'memory' UNION ALL SELECT MAX(id) AS n FROM memories
        ) AS numbers
    ) AS remembered
) AS highest;

INSERT INTO notes
    (id, project, kind, text, author, ticket, created_at, closed_at, closed_by, outcome, files, labels, pinned,
     accepted_at, accepted_by)
SELECT memories.id + counters.value, memories.project, CASE WHEN memories.lesson = 1 THEN 'lesson' ELSE 'memory' END,
    memories.text, CASE WHEN memories.lesson = 1 THEN '' ELSE 'root' END, memories.ticket, memories.created_at,
    memories.forgotten_at, '', '', memories.files, memories.labels, 0, memories.accepted_at, memories.accepted_by
FROM memories, counters
WHERE counters.name = 'moved';

CREATE TABLE note_uses (
    note INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (note, ticket)
);

INSERT INTO note_uses
SELECT recalled.memory + counters.value, recalled.ticket, recalled.at
FROM recalled, counters
WHERE counters.name = 'moved';

UPDATE counters SET value = (
    SELECT MAX(n) FROM (
        SELECT SUM(value) AS n FROM counters WHERE name IN ('moved', 'memory')
        UNION ALL SELECT value AS n FROM counters WHERE name = 'note'
        UNION ALL SELECT MAX(id) AS n FROM notes
    ) AS numbers
)
WHERE name = 'note';

DELETE FROM counters WHERE name IN ('moved', 'memory');

DROP TABLE recalled;

DROP TABLE memories;

-- Requests that were answered: of people about a project, of callers about agents, and deliveries of forges.
CREATE TABLE new_requests (
    scope TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, request)
);

INSERT INTO new_requests SELECT 'project-' || project, request, answer, at FROM requests;

INSERT INTO new_requests SELECT 'caller-' || caller, request, answer, at FROM calls;

INSERT INTO new_requests SELECT 'forge', id, '{}', at FROM forge_deliveries;

DROP TABLE requests;

DROP TABLE calls;

DROP TABLE forge_deliveries;

ALTER TABLE new_requests RENAME TO requests;

-- Takeovers: a person works in the conversation of a ticket's agent, or of a standing agent. The other number is 0.
CREATE TABLE takeovers (
    ticket INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    mode TEXT NOT NULL,
    submitted INTEGER NOT NULL,
    accepts INTEGER NOT NULL,
    owes INTEGER NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    alone INTEGER,
    stage TEXT NOT NULL,
    PRIMARY KEY (ticket, agent)
);

INSERT INTO takeovers SELECT ticket, 0, mode, submitted, accepts, 0, since, alone, stage FROM attendances;

INSERT INTO takeovers SELECT 0, agent, 'wheel', 0, 0, owes, since, alone, stage FROM agent_wheels;

DROP TABLE attendances;

DROP TABLE agent_wheels;

-- Epics: a budget, a gate, or both.
CREATE TABLE new_epics (
    project INTEGER NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    budget DOUBLE PRECISION,
    gate TEXT,
    PRIMARY KEY (project, name)
);

INSERT INTO new_epics
SELECT epics.project, epics.name, epics.budget, epic_gates.gate
FROM epics LEFT JOIN epic_gates ON epic_gates.project = epics.project AND epic_gates.name = epics.name;

INSERT INTO new_epics
SELECT epic_gates.project, epic_gates.name, NULL, epic_gates.gate
FROM epic_gates LEFT JOIN epics ON epics.project = epic_gates.project AND epics.name = epic_gates.name
WHERE epics.name IS NULL;

DROP TABLE epics;

DROP TABLE epic_gates;

ALTER TABLE new_epics RENAME TO epics;

-- What a leader has read, with the agent that it is.
ALTER TABLE agents ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agents ADD COLUMN shown INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agents ADD COLUMN noticed INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agents ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agents ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agents ADD COLUMN handovers INTEGER NOT NULL DEFAULT 0;

UPDATE agents SET
    seen = (SELECT leaders.seen FROM leaders WHERE leaders.agent = agents.number),
    shown = (SELECT leaders.shown FROM leaders WHERE leaders.agent = agents.number),
    noticed = (SELECT leaders.noticed FROM leaders WHERE leaders.agent = agents.number),
    tokens = (SELECT leaders.tokens FROM leaders WHERE leaders.agent = agents.number),
    compacted = (SELECT leaders.compacted FROM leaders WHERE leaders.agent = agents.number),
    handovers = (SELECT leaders.handovers FROM leaders WHERE leaders.agent = agents.number)
WHERE number IN (SELECT agent FROM leaders);

DROP TABLE leaders;

-- Details of a ticket, apart from what moves: its texts, its agent's approach that waits for approval, the result that it
-- waits for, the conversation that it continues.
ALTER TABLE wishes RENAME TO ticket_details;

ALTER TABLE ticket_details ADD COLUMN approach_stage TEXT;

ALTER TABLE ticket_details ADD COLUMN approach TEXT;

ALTER TABLE ticket_details ADD COLUMN approach_by TEXT;

ALTER TABLE ticket_details ADD COLUMN approach_at DOUBLE PRECISION;

ALTER TABLE ticket_details ADD COLUMN approach_why TEXT;

ALTER TABLE ticket_details ADD COLUMN condition_about TEXT;

ALTER TABLE ticket_details ADD COLUMN condition_result TEXT;

ALTER TABLE ticket_details ADD COLUMN condition_word TEXT;

ALTER TABLE ticket_details ADD COLUMN condition_negated INTEGER;

ALTER TABLE ticket_details ADD COLUMN adopted_at DOUBLE PRECISION;

ALTER TABLE ticket_details ADD COLUMN adopted_conversation TEXT;

ALTER TABLE ticket_details ADD COLUMN adopted_source TEXT;

UPDATE ticket_details SET
    approach_stage = (SELECT plans.stage FROM plans WHERE plans.ticket = ticket_details.ticket),
    approach = (SELECT plans.text FROM plans WHERE plans.ticket = ticket_details.ticket),
    approach_by = (SELECT plans.decided_by FROM plans WHERE plans.ticket = ticket_details.ticket),
    approach_at = (SELECT plans.decided_at FROM plans WHERE plans.ticket = ticket_details.ticket),
    approach_why = (SELECT plans.why FROM plans WHERE plans.ticket = ticket_details.ticket)
WHERE ticket IN (SELECT ticket FROM plans);

UPDATE ticket_details SET
    condition_about = (SELECT conditions.about FROM conditions WHERE conditions.ticket = ticket_details.ticket),
    condition_result = (SELECT conditions.result FROM conditions WHERE conditions.ticket = ticket_details.ticket),
    condition_word = (SELECT conditions.word FROM conditions WHERE conditions.ticket = ticket_details.ticket),
    condition_negated = (SELECT conditions.negated FROM conditions WHERE conditions.ticket = ticket_details.ticket)
WHERE ticket IN (SELECT ticket FROM conditions);

UPDATE ticket_details SET
    adopted_at = (SELECT adoptions.at FROM adoptions WHERE adoptions.ticket = ticket_details.ticket),
    adopted_conversation = (SELECT adoptions.conversation FROM adoptions WHERE adoptions.ticket = ticket_details.ticket),
    adopted_source = (SELECT adoptions.source FROM adoptions WHERE adoptions.ticket = ticket_details.ticket)
WHERE ticket IN (SELECT ticket FROM adoptions);

DROP TABLE plans;

DROP TABLE conditions;

DROP TABLE adoptions;

CREATE INDEX ticket_details_waiting ON ticket_details (condition_result) WHERE condition_result IS NOT NULL;

CREATE INDEX ticket_details_adopted ON ticket_details (adopted_conversation) WHERE adopted_conversation IS NOT NULL;

-- A plan is of a goal; its other tables are named after it.
ALTER TABLE goals RENAME TO plans;

ALTER TABLE goal_documents RENAME TO plan_documents;

ALTER TABLE goal_rounds RENAME TO plan_rounds;

ALTER TABLE goal_tickets RENAME TO plan_tickets;

ALTER TABLE holdings RENAME TO claimed_tickets;

ALTER TABLE watches RENAME TO observations;

ALTER TABLE helps RENAME TO interventions;

ALTER TABLE readings RENAME TO read_positions;

ALTER TABLE verdicts RENAME COLUMN reader TO reviewer;

-- Events and rules that were named by pictures.
UPDATE events SET kind = 'throttle.changed' WHERE kind = 'pace.changed';

UPDATE events SET kind = 'mail.delivered' WHERE kind = 'mail.heard';

UPDATE events SET kind = 'watchdog.step' WHERE kind = 'liveness.step';

UPDATE interventions SET rule = 'dead-is-ended' WHERE rule = 'dead-is-buried';
