"""Routines: tickets that start by time or by event."""
