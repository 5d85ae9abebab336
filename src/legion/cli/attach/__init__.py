"""Commands that put the person's terminal in front of a run's."""
