-- A ticket that was rewound.

INSERT INTO rewinds (id, ticket, at, moment, run, conversation, source, point)
VALUES (1, 1, 1400.0, '1:4', 2, 'new-talk', 'one-talk', 'the-entry');
