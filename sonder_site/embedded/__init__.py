"""The embedded store: Django's PostgreSQL backend over a server that this package starts on first use.

`base` is the database backend, `server` shares one server among processes, `cluster` makes and starts it,
`preflight` refuses what cannot work with a sentence, `keeper` stops it when its last user is gone.
"""
