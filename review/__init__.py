"""The human surface."""
