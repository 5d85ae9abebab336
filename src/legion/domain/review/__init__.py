"""Reviews: who reads a change, what a verdict may say, what needs approval."""
