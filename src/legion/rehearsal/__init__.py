"""The rehearsal: a scripted model with the APIs of Anthropic and OpenAI, in a process of its own.

It stores no conversation: script and step are read from each request.
"""
