-- A team, a label and an advice.

UPDATE tickets SET team = 'pair', crew = 'c0ffee', labels = '["urgent"]' WHERE id = 1;

INSERT INTO crews (digest, body)
VALUES ('c0ffee', '{"team": "pair", "rounds": 2, "stages": [
    {"name": "lead", "part": "advise", "own_part": "read", "prompt": "Lead.", "about": "", "tools": ["Read"],
    "model": "opus", "provider": "anthropic", "driver": "", "origin": "yours", "file": "roles/lead.toml"},
    {"name": "engineer", "part": "build", "own_part": "build", "prompt": "Build.", "about": "", "tools": null,
    "model": "", "provider": "", "driver": "", "origin": "shipped", "file": ""}]}');

INSERT INTO advice (ticket, turn, role, run, text, given_at)
VALUES (1, 0, 'lead-advise', 1, 'Begin small.', 1150.0);
