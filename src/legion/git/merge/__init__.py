"""Merging in memory: candidates, conflicts, predictions."""
