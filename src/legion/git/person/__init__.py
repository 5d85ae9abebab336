"""The person's repository: read, and fast-forwarded by `collect`."""
