"""Forges: connect one, assign issues, show and merge pull requests."""
