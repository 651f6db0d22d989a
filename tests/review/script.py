"""What the script of a page does without being asked."""

import re
from uuid import UUID

from django.test import Client


def claim(client: Client, shown: str) -> UUID:
    """Holds the question on a page, as its script does once the page is there; returns which."""
    found = re.search(r'data-claim="(/review/items/([^/]+)/claim/)"', shown)
    assert found is not None, "the page offers a question to hold"
    assert client.post(found[1], headers={"X-Hold": "1"}).status_code == 204
    return UUID(found[2])
