"""The place where a program runs: sandbox, environment, slots, quota, setup, and saving what it left."""
