"""Access to the operating system: processes, files, locks, folders, ports, crash points."""
