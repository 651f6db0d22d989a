"""The loop: interaction -> retrieval -> outcome -> credit -> standing -> quarantine -> probation.

Read it in the order in which a lesson lives:

1. ``rules/``      pure decisions: numbers in, a decision with its reasons out. No Django, no clock, no I/O.
2. ``models/``     what is remembered, and what PostgreSQL itself refuses.
3. ``embedding/``  text to vector, behind a Protocol.
4. ``search/``     reads: semantic, lexical, and their fusion.
5. ``services/``   writes, in flow order: interaction, retrieval, outcome, credit, quarantine, lesson, importing.
6. ``tasks.py``    background work: takes an id, calls a service, may run twice.
7. ``api/``        HTTP for agents; ``admin/`` and ``management/commands/`` for operators.

Imports point one way, and a test enforces it::

    errors, rules <- conf <- models <- embedding, search <- services <- tasks <- api
"""
