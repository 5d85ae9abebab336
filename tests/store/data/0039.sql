-- A plan that stops at its short specification.

UPDATE plans SET short = 1, stops = 1, depth = '3 points, 40 words' WHERE id = 1;
