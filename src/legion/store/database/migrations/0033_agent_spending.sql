-- What the turns of each standing agent cost, and the tickets and planners that it started.

CREATE TABLE agent_spending (
    agent TEXT PRIMARY KEY,
    own_usd DOUBLE PRECISION NOT NULL,
    given_usd DOUBLE PRECISION NOT NULL
);

INSERT INTO agent_spending
SELECT payers.agent, SUM(payers.own_usd), SUM(payers.given_usd)
FROM (
    SELECT runs.conversation AS agent, usage.usd AS own_usd, 0.0 AS given_usd
    FROM usage JOIN runs ON runs.id = usage.run
    WHERE runs.agent IS NOT NULL
    UNION ALL
    SELECT tickets.dispatcher, 0.0, usage.usd
    FROM usage JOIN runs ON runs.id = usage.run JOIN tickets ON tickets.id = runs.ticket
    WHERE tickets.dispatcher <> ''
    UNION ALL
    SELECT goals.dispatcher, 0.0, usage.usd
    FROM usage JOIN runs ON runs.id = usage.run JOIN goals ON goals.id = runs.plan
    WHERE goals.dispatcher <> ''
) AS payers
GROUP BY payers.agent;
