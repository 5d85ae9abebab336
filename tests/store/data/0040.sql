-- A leader that was asked to write down what its conversation holds.

UPDATE agents SET called = 1 WHERE number = 1;
