"""Answers as rows of text, for commands and terminal UI alike; columns, states, colours, the drawn board."""
