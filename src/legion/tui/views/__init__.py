"""Screens as rows of plain text: pure functions of what the store has. `--plain` prints them, widgets draw them."""
