"""Agent programs as data: one TOML file each says how the program is found, started, pointed at a model and driven."""
