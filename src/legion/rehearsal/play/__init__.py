"""Which reply belongs to a request: the script, the step, and random trouble."""
