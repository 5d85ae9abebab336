"""Pages that people read: status, ticket page, history, usage, doctor. Nothing here writes."""
