"""The server of the scripted model."""
