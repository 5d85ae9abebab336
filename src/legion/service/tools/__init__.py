"""Legion's tools: what a model asks for by name and JSON, as use cases, each with no more rights than the caller's."""
