"""Commands about leaders: notes."""
