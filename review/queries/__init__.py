"""What the pages read: each screen's rows, in a constant number of queries."""
