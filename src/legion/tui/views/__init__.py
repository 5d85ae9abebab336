"""Parts of screens as rows of text that the terminal UI alone has: pure functions of what the store has."""
