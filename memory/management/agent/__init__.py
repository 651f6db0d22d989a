"""A scripted agent: what it says, how it talks to a running server, and what must have come of it in the end."""
