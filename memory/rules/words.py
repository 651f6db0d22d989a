"""Small words that many sentences need."""


def count(n: int, one: str, many: str | None = None) -> str:
    """`1 loss`, `2 losses`; the plural adds an s unless it is given."""
    return f"{n} {one if n == 1 else many or one + 's'}"
