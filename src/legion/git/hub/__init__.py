"""The hub, Legion's own bare repository per project."""
