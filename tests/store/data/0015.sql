-- A browser that was let in to the page, and a link that was not opened yet.

INSERT INTO devices (id, name, code_hash, code_ends_at, secret_hash, host, read_only, made_at, seen_at, revoked_at)
VALUES (1, 'phone', 'c1', 1920.0, 's1', '127.0.0.1:6670', 1, 1800.0, 1801.0, NULL),
    (2, '', 'c2', 1930.0, NULL, '', 0, 1810.0, NULL, NULL);
