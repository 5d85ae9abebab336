"""The APIs of the scripted model: reads requests, writes answers, logs both."""
