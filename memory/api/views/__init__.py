"""The endpoints. A view checks the right, validates, calls one service, and answers."""
