"""The conformance suite of drivers: a real agent program, a scripted model, and the promises of every driver."""
