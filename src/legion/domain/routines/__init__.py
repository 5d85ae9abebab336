"""Routines: tickets that begin by time or by event."""
