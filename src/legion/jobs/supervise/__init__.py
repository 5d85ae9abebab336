"""One run of any kind: wait for its end, follow its journal, forward its questions, count its usage, end it."""
