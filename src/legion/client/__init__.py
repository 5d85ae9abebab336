"""Clients of the daemon: find it, start it, call it. Knows the wire and nothing behind it."""
