"""Admission of requests: passes, models and budgets, the route to a provider, and the provider's key."""
