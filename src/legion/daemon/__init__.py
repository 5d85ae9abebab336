"""The daemon: the one place where everything is wired together."""
