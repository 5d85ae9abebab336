"""Rows of the board: projects, tickets, questions, verdicts, receipts, landings."""
