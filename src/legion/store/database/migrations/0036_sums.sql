-- Sums that are read often, so that no answer adds up all that ever happened: what was spent, and ended tickets by state.

CREATE TABLE spending_sums (
    kind TEXT NOT NULL,
    project INTEGER NOT NULL,
    name TEXT NOT NULL,
    day TEXT NOT NULL,
    requests BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    usd DOUBLE PRECISION NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (kind, project, name, day)
);

INSERT INTO spending_sums
SELECT CASE WHEN runs.plan IS NULL THEN 'epic' ELSE 'plan' END, runs.project,
    CASE WHEN runs.plan IS NULL THEN COALESCE(tickets.epic, '') ELSE CAST(runs.plan AS TEXT) END, usage.day,
    SUM(usage.requests), SUM(usage.failed), SUM(usage.unpriced), SUM(usage.input), SUM(usage.output),
    SUM(usage.cache_read), SUM(usage.cache_write), SUM(usage.usd), SUM(usage.seconds)
FROM usage JOIN runs ON runs.id = usage.run LEFT JOIN tickets ON tickets.id = runs.ticket
GROUP BY CASE WHEN runs.plan IS NULL THEN 'epic' ELSE 'plan' END, runs.project,
    CASE WHEN runs.plan IS NULL THEN COALESCE(tickets.epic, '') ELSE CAST(runs.plan AS TEXT) END, usage.day;

INSERT INTO spending_sums SELECT 'own', 0, agent, '', 0, 0, 0, 0, 0, 0, 0, own_usd, 0.0 FROM agent_spending;

INSERT INTO spending_sums SELECT 'given', 0, agent, '', 0, 0, 0, 0, 0, 0, 0, given_usd, 0.0 FROM agent_spending;

DROP TABLE agent_spending;

INSERT INTO counters
SELECT 'ended/' || CAST(project AS TEXT) || '/' || state, COUNT(*) FROM tickets
WHERE live = 0 AND dropped_at IS NULL GROUP BY project, state;

CREATE INDEX events_of_kind ON events (project, kind, n);

CREATE INDEX tickets_with_a_note ON tickets (project, id) WHERE live = 0 AND reason <> '';

DROP INDEX tickets_by_state;

CREATE INDEX tickets_by_state ON tickets (project, state, moved_at, id) WHERE dropped_at IS NULL;

DROP INDEX runs_active;

CREATE INDEX runs_by_end ON runs (ended_at, id);
