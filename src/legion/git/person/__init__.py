"""The person's repository: looked at, and fast-forwarded by `collect`."""
