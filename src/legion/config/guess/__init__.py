"""Guesses the legion.toml of a new project from its files."""
