"""The settings files: legion.toml, the person's own, providers, routes, rules, roles and teams."""
