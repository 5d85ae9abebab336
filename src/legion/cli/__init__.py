"""The command line: arguments in, screens and JSON out. It imports only the client and the wire and holds no rules."""
