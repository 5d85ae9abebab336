"""The merge queue of one project: batches, speculation, suspects, and moving the target."""
