"""Scheduling rules: decide, admission, budgets, throttling."""
