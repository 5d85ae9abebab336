"""The HTTP server of the scripted model."""
