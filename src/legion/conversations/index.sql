CREATE TABLE conversations (
    n INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,      -- opencode: DATABASE#SESSION
    program TEXT NOT NULL,
    id TEXT NOT NULL,
    facts TEXT NOT NULL,            -- JSON: all of ConversationFacts
    parent TEXT NOT NULL,
    messages INTEGER NOT NULL,
    ended_at REAL NOT NULL,
    size INTEGER NOT NULL,          -- the file as it was when it was read
    mtime INTEGER NOT NULL,
    head TEXT NOT NULL,             -- a digest of its start: another file may have taken its place
    offset INTEGER NOT NULL         -- what follows is not read yet
) STRICT;
CREATE INDEX conversations_by_end ON conversations (ended_at);
CREATE INDEX conversations_by_id ON conversations (id);

CREATE TABLE databases (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT;

-- The id is the time in seconds, then a counter: what is newest has the greatest.
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_conversation ON entries (conversation);

CREATE VIRTUAL TABLE texts USING fts5(text, content='entries', content_rowid='id', tokenize='unicode61', prefix='3');

-- One row: how far the present round of reading is.
CREATE TABLE progress (
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    bytes_done INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    finished_at REAL NOT NULL       -- 0: never
) STRICT;
INSERT INTO progress VALUES (0, 0, 0, 0, 0);
