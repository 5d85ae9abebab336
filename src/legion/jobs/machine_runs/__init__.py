"""Runs on other machines, from the head's side: a job waits for such a run as for one of its own."""
