"""The operating system: processes, files, locks, folders, crash points. Knows nothing of tickets."""
