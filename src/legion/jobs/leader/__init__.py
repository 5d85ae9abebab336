"""Leaders: what a turn of one starts with, what it may decide, and when it starts a fresh conversation."""
