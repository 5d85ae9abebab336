-- A goal that is held against what landed, once its tickets have ended.

UPDATE plans SET reads = 1 WHERE id = 1;
