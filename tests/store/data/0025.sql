-- A plan with a specification, and a ticket that starts only if another fails.

INSERT INTO goals (id, project, version, state, source, goal, epic, team, model, budget, may_ask, about, rounds, tries,
    draft, findings, asked, guidance, reason, held_until, conversation, dispatcher, created_at, moved_at, spec, keep_docs)
VALUES (2, 1, 1, 'planning', 'goal', 'Open at night.', '', '', '', NULL, 0, NULL, 0, 0,
    NULL, '[]', '[]', '', '', NULL, 'spec-talk', '', 2700.0, 2700.0, 1, 1);

INSERT INTO goal_documents (plan, stage, text, run, at) VALUES (2, 'gather', '# Night', 97, 2750.0);

INSERT INTO conditions (ticket, about, result, word, negated) VALUES (2, '[1]', 'failed', '', 0);
