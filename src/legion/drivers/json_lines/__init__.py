"""Programs that print a JSON object per line and exit after each turn."""
