"""Use cases about machines: inviting them, and what they ask of the head."""
