"""Scripts: their records, their parser, and scripts made of recordings."""
