"""Tickets: their moves, their order, their attempts, their evidence."""
