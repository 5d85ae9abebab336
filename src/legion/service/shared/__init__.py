"""Parts that several use cases share."""
