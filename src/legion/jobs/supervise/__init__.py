"""One run, whatever it is for: wait for its end, follow its journal, pass on its questions, count its usage."""
