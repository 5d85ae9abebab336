"""The rules of Legion and nothing else: no files, no clock, no network, no await."""
