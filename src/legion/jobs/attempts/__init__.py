"""Steps after a failed attempt: feedback, review rounds, escalation."""
