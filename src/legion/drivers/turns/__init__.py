"""Runs that consist of turns, for all drivers: the loop, its journal, its outcome, and Legion's tools over HTTP."""
