"""Moving in: the memory of another Sonder, a SQLite file, becomes part of this store.

Read in this order: `snapshot` (the file, without touching it), `values` (what its columns may hold), `report` (what
became of each row), `job` (what one run knows), then the tables as they are taken: `work`, `lessons`, `exposures`,
`judgements`, `preferences`, `rest`; `run` puts them in order.
"""
