"""The review pages, one module a screen."""
