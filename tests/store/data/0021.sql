-- A project at a forge, with an issue, its pull request, and a comment that went back to the agent.

INSERT INTO forges (project, kind, url, repository, branch, key_from, key_value, login, label, milestone, assignee,
    identity, problem, problem_since, wait_until, synced_at, added_at)
VALUES (1, 'github', 'https://github.com', 'acme/shop', 'main', 'env', 'TOKEN', 'bot', 'legion:go', '', '', 'one',
    '', NULL, NULL, 2100.0, 2000.0);

INSERT INTO forge_issues (project, number, ticket, stage, branch, claim, comment, wrote, request, why, at)
VALUES (1, 7, 2, 'claimed', 'issue-7-tills', 'c7', 9000000000, 'digest', '{}', '', 2001.0);

INSERT INTO forge_pulls (ticket, project, stage, branch, base, tested, pushed, number, url, wrote, foreign_commit, merged,
    ci, ruling, note, at)
VALUES (2, 1, 'open', 'issue-7-tills', 'b', 't', 't', 8, 'https://github.com/acme/shop/pull/8', 'digest', '', '', 'red',
    '', '', 2002.0);

INSERT INTO forge_feedback (project, source, ticket, thread, answered, at)
VALUES (1, 'line:9000000001', 2, 9000000001, 0, 2003.0);

INSERT INTO forge_deliveries (id, at) VALUES ('d-1', 2004.0);
