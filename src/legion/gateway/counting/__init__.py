"""Reads token counts out of answers while they pass by."""
