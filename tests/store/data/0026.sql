-- The third ticket asks for a label, the reason of a claim is kept, and a head had a lease.

UPDATE tickets SET "on" = '["gpu"]' WHERE id = 3;

UPDATE claims SET why = 'has gpu, 4 of 4 slots were free' WHERE id = 1;

INSERT INTO head_leases (id, holder, generation, until) VALUES (1, 'desk:/home/ada/.local/share/legion', 3, 2500.0);
