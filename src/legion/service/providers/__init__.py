"""Use cases about model providers: keys, routes, logins, a test request."""
