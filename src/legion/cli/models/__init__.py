"""Commands about models: providers, routes, logins, rehearsals."""
