"""HTTP in front of the service: routes, the guard before them, errors as answers. Holds no rules and no state."""
