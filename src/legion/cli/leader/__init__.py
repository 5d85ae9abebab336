"""Commands about leaders: chat, notes."""
