"""Legion's tools: what a model asks for by name and JSON, with no more rights than the caller."""
