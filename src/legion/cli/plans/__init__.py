"""Commands about plans, epics and templates."""
