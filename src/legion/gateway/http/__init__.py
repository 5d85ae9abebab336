"""HTTP in and out: the server, the choice of a provider, forwarding and translating."""
