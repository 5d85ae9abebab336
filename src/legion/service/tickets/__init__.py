"""Use cases about tickets: dispatch and the actions on them."""
