"""The leader: a standing agent that plans, dispatches and reports. What it must not forget, and what it starts with."""
