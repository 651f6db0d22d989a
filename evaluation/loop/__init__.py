"""Whether an agent does better with the whole loop than with retrieval alone, or with neither."""
