"""The git program and what it reads and writes: objects, history, attributes."""
