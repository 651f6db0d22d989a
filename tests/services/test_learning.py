"""Two turns that state the same wishes in another order."""

import threading

import pytest
from django.db import connection

from memory.models import Account, EmbeddingSpace, Preference
from memory.services.interaction import Start, start
from tests.services.play import make_callers

WISHES = [f"I prefer {word} words over others." for word in ("alpha", "gamma", "epsilon", "theta")]


@pytest.mark.django_db(transaction=True)
def test_do_not_wait_for_each_other_for_ever(space: EmbeddingSpace) -> None:
    caller = make_callers(Account.objects.create(slug="busy", name="Busy", review_policy="auto"))["caller"]
    failures: list[BaseException] = []

    def state(order: int) -> None:
        try:
            for _ in range(10):
                start(caller, Start(task=" ".join(WISHES[::order])), None)
        except BaseException as error:  # noqa: BLE001 - a thread's failure must reach the test
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=state, args=(order,)) for order in (1, -1) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert failures == []
    assert set(Preference.objects.values_list("evidence_count", flat=True)) == {60}
