"""Scheduling: the scheduler, admission of new runs, the gateway and the waits for a provider."""
