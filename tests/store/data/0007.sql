-- What proves which criterion.

UPDATE tickets SET bound = '[[0, "make test"]]', acceptance = '["smoke"]' WHERE id = 1;
