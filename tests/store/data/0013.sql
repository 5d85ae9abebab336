-- A plan with one approved ticket, its round and its planner's run.

INSERT INTO goals (id, project, version, state, source, goal, epic, team, model, budget, may_ask, about, rounds, tries,
    draft, findings, asked, guidance, reason, held_until, conversation, created_at, moved_at)
VALUES (1, 1, 3, 'partly', 'goal', 'Open on Sundays.', 'sunday', '', '', 0.5, 0, NULL, 1, 1,
    '{"tickets": [{"key": "doors", "title": "Doors"}, {"key": "staff", "title": "Staff", "after": ["doors"]}]}',
    '[]', '[]', '', '', NULL, 'plan-talk', 1700.0, 1800.0);

INSERT INTO goal_rounds (plan, number, author, run, usable, findings, message, at)
VALUES (1, 1, 'planner', 97, 1, '[["size", "doors", "too large"]]', '', 1750.0);

INSERT INTO goal_tickets (plan, key, ticket, usd, seconds, at) VALUES (1, 'doors', 3, 0.25, 60.0, 1800.0);

INSERT INTO epics (project, name, budget) VALUES (1, 'sunday', 7.5);

INSERT INTO runs (id, project, ticket, agent, attempt, generation, started_at, ended_at, outcome, detail, saved,
    conversation, access, prompt, role, part, plan)
VALUES (97, 1, NULL, NULL, 1, 1, 1700.0, 1750.0, 'finished', '', NULL, 'plan-talk', '', '', 'planner', 'read', 1);
