"""`legion import`: reads the files of other tools, shows what becomes what, and brings it along."""
