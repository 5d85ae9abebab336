"""The merge queue's rules: order, bisection, conflicts, checks."""
