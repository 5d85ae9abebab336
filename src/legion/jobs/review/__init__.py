"""The review job: an independent reviewer reads a change in a checkout of its own."""
