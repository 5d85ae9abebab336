"""Commands about forges, issues and pull requests."""
