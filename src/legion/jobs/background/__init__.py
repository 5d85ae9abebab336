"""Background threads: housekeeping, watchdog, notifications, conflict prediction."""
