"""How fast Sonder is, against floors measured beside it in the same run: `make bench`."""
