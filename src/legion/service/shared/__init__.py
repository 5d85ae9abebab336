"""Pieces that several use cases share."""
