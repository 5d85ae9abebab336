"""The copy of the board in the hub, and restoring a database from it."""
