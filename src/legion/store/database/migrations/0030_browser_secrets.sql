-- Browsers logged in with cookies, which every server on the same host could read: each has to be let in again.

UPDATE devices SET revoked_at = made_at WHERE secret_hash IS NOT NULL AND revoked_at IS NULL;
