"""What a policy with other constants would have decided over this store's own log, and when."""
