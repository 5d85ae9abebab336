"""Jobs that run on other machines: the queue that carries them there."""
