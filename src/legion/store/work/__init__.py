"""Rows about the work: runs, claims, usage, the scheduler's snapshot."""
