"""The command line: words in, screens and JSON out. Knows the client and the wire; no rule lives here."""
