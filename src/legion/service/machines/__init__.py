"""Use cases about machines: inviting, listing and steering them, and what they ask of the head."""
