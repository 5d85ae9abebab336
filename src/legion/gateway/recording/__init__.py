"""Recordings of what recorded runs asked and were answered."""
