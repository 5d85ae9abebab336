"""One module per file format of a conversation."""
