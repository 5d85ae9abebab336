"""Loops beside the jobs: housekeeping, watchdog, notifications, conflict prediction."""
