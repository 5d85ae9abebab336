-- The third ticket asks for a label, and the reason of a claim is kept.

UPDATE tickets SET "on" = '["gpu"]' WHERE id = 3;

UPDATE claims SET why = 'has gpu, 4 of 4 slots were free' WHERE id = 1;
