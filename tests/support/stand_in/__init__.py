"""A small program that speaks the protocol of Claude Code's SDK, for scenarios whose subject is Legion.

It asks the model through the gateway, uses its tools and writes transcripts as Claude Code does, in a tenth of the
CPU time. `tests/scenarios/test_stand_in.py` plays the same scripts with both programs and compares what Legion
recorded; with LEGION_REAL_CLAUDE=1, as in `make soak`, all scenarios use the real one. Its modules import the standard
library alone, and become one file: nothing else of them can be read inside a sandbox.
"""
