-- A check that a person trusts.

UPDATE receipts SET trusted = 'ada' WHERE ticket = 1;
