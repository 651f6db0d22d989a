"""A whole account in one file, and back.

Read in this order: `kinds` (what belongs to an account), `wire` (a row as JSON), `writing` (the export), `streaming`
(the same in pieces), `checking` (a file before anything is written), `arrival` (what an import knows), `deciding` and
`making` (which rows come in, and how), `lessons`, `trust` and `replay` (what becomes of each), `reading` (the import).
"""
