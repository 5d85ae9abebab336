"""A project's forge: one pass over issues and pull requests, and the loop that repeats it."""
