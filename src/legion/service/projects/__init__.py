"""Use cases about projects: registration, trust, collect, teams and roles."""
