-- A ticket that undoes another.

UPDATE tickets SET undoes = 1 WHERE id = 3;
