"""What the whole product bears, and what it grows by: `make growth`."""
