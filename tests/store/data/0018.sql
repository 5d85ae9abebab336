-- A ticket that continues a conversation of the person's.

INSERT INTO adoptions (ticket, at, conversation, source) VALUES (1, 1950.0, 'c-of-ticket', 'c-of-person');
