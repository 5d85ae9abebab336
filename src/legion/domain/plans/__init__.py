"""Plans: proposed tickets as data, how they are read and checked, and what they may cost."""
