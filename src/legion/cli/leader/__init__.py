"""Commands about leaders: chat, notes, lessons, routines."""
