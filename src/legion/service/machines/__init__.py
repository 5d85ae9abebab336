"""Use cases about machines: list them, steer them, remove them."""
