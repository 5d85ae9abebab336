"""Commands about tickets: dispatch, show, act, follow, wait."""
