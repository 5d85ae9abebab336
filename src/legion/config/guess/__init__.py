"""What `legion init` writes into a new legion.toml, guessed from the repository."""
