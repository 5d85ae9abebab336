"""How programs of ours talk to the daemon: find it, start it, ask it. Knows the wire and nothing behind it."""
