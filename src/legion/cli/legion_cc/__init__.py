"""The six programs of legion_cc, legion-dispatch to legion-deps: arguments, prints and exit codes are theirs."""
