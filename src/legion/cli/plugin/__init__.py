"""Legion as a plugin of the person's own Claude Code."""
