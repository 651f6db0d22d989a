"""Agents that remember with Sonder. The tests run each of them against a real server."""
