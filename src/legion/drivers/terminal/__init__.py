"""Interactive programs in a terminal that the runner holds."""
