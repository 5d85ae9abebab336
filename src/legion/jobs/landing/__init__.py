"""The merge queue of one project: batches, speculation, suspects, moving the target."""
