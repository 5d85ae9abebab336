"""The APIs that the scripted model speaks: requests read, answers written."""
