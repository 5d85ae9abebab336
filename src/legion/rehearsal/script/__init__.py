"""Scripts: their records, their parser, and the generic script."""
