"""Fixtures shared by all tests. The cast: an agent, another account's agent, a reviewer, a reader, an operator."""
