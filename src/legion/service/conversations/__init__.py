"""Use cases about conversations: list, search, export, sums, health."""
