"""`legion demo --machines`: several machines on one host, and links between them that can be cut and slowed."""
