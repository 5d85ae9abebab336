"""What the tests of several rooms share: one seed, one Postgres, one view of the source files."""
