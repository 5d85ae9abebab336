"""HTTP in front of the service: routes, the guard before them, errors as answers. Knows no rule and keeps no state."""
