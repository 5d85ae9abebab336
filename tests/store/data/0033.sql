-- The money of an agent.

INSERT INTO agent_spending (agent, own_usd, given_usd) VALUES ('a-stored', 0.5, 0.25);
