-- A ticket that lost a conflict, and one that began on the change of another.

UPDATE tickets SET claims = '["src/cart.py::Cart.__init__"]', lost = 1, alone = 1 WHERE id = 1;

UPDATE tickets SET behind = 1 WHERE id = 2;
