"""Google's Gemini API, as callers speak it. No provider is asked in it: Google serves Chat Completions too."""
