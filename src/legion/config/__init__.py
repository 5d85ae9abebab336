"""Settings: legion.toml of a repository, the person's own files, and what `legion init` guesses.

Reads text and returns frozen records. Runs nothing, trusts nothing, writes nothing.
"""
