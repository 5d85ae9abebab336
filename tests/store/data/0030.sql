-- A browser that was let in with a secret of its own.

INSERT INTO devices (id, name, code_hash, code_ends_at, secret_hash, host, read_only, made_at, seen_at, revoked_at)
VALUES (902, 'laptop', 'c902', 1940.0, 's902', '127.0.0.1:6670', 0, 1820.0, 1821.0, NULL);
