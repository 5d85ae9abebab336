"""What should run now: decide, admission, budgets, throttling."""
