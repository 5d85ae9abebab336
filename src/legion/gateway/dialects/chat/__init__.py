"""OpenAI's Chat Completions API, as many other providers speak it too."""
