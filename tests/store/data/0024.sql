-- A machine with a run of the first ticket, a message for that run, and a receipt that names the machine.

INSERT INTO machines (id, name, labels, slots, state, token_hash, boot, version, protocol, toolchain, quiet_hours,
    mirrors, heard_at, joined_at, removed_at)
VALUES (1, 'desk', '["gpu", "linux"]', 8, 'active',
    'e3316e2bafebb6103a3418e8778c0adc960d40213a03a7e7f4fcd3426ed807bf', 'boot-1', '0.1', 1, 'tools', '', '[1]',
    2400.0, 2390.0, NULL);

INSERT INTO machine_invitations (id, code_hash, name, labels, slots, quiet_hours, made_at, ends_at, used_at)
VALUES (1, 'code', 'desk', '[]', 8, '', 2380.0, 3280.0, 2390.0);

INSERT INTO machine_runs (run, name, project, generation, machine, state, placed_at, taken_at, ended_at, why)
VALUES (2, 'ticket-1-run-2', 1, 2, 1, 'taken', 2395.0, 2396.0, NULL, '');

INSERT INTO machine_commands (id, run, name, machine, kind, facts, made_at)
VALUES (1, 2, 'ticket-1-run-2', 1, 'tell', '{"id": "m1", "text": "use tabs"}', 2401.0);

UPDATE runs SET machine = 'desk' WHERE id = 2;

UPDATE receipts SET machine = 'desk' WHERE id = 1;
