"""Token counters for answers that are forwarded unchanged."""
