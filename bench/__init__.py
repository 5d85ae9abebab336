"""Speed and memory, side by side with the plain way in the same run. Read the ratios: machines are noisy."""
