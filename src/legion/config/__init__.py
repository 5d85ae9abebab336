"""Settings: legion.toml of a repository, the person's own file, and what `legion init` guesses.

Reads text and answers with frozen records. Runs nothing, trusts nothing, writes nothing.
"""
