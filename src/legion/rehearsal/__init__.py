"""The rehearsal: a scripted model that speaks the APIs of Anthropic and OpenAI, in a process of its own.

It keeps nothing of a conversation: which script and which step is asked for is read from each request.
"""
