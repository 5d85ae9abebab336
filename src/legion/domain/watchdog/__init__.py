"""Watchdog rules: is a run making progress, and which intervention is due if not."""
