"""What follows a failed attempt: feedback, review rounds, escalation."""
