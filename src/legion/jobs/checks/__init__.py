"""Checks on a change: candidates, execution, receipts, and what a person must approve first."""
