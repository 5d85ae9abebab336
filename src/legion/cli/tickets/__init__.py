"""Commands about tickets: dispatch, look, act, follow, wait."""
