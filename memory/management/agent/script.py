"""What the agent is asked and what it answers. The same number gives the same words; another number, other lessons."""

from dataclasses import dataclass
from typing import Final

ORDINARY = "Done. All tests pass."
LABEL = "It works now, and all tests pass.\n\nLesson: {}\n"

#: A task and what is learned from it. `{n}` makes the lesson one of its run: its code has another name in each.
_TAUGHT: Final = (
    (
        "make the nightly export finish although the database is slow",
        "Give the session of `export_nightly_{n}()` a timeout of 30 s, because one slow query holds up every later one.",
    ),
    (
        "show the invoices of a customer who has thousands of them",
        "Page through `invoice_rows_{n}` by key and not by offset, because a deep offset reads every row before it.",
    ),
    (
        "let people upload photographs from their telephones",
        "Strip the position from pictures with `drop_exif_{n}()` before they are stored, because it tells where people live.",
    ),
    (
        "send the reminder letters once a month and not twice",
        "Write the letter's key with `claim_letter_{n}()` before it is sent, because a worker that dies after sending repeats it.",
    ),
    (
        "draw the chart of the yearly sales in the browser",
        "Round with `bucket_{n}()` on the server to at most 500 points, because a browser stalls on every sale of a year.",
    ),
    (
        "read the supplier's price list, which comes as a spreadsheet",
        "Read prices in `price_cells_{n}` as decimals, because a spreadsheet's floats turn 0.29 into 0.28999999999999998.",
    ),
    (
        "translate the shop into Turkish",
        "Compare codes with `fold_code_{n}()` and never by the user's locale, because Turkish lower case changes the letter I.",
    ),
    (
        "delete the accounts of customers who left",
        "Remove the backups' key with `shred_key_{n}()` as the last step, because a deleted row lives on in every backup.",
    ),
    (
        "find out why the search forgets new products",
        "Wait for `index_lag_{n}` to reach zero in the test, because a fresh product is searchable only after a refresh.",
    ),
    (
        "move the shopping carts to another cache server",
        "Write carts to both servers through `twin_cart_{n}` for one lifetime of a cart, because a hard switch empties them all.",
    ),
    (
        "print the labels of parcels in the right size",
        "Ask the printer with `label_dpi_{n}()` for its resolution, because a label drawn for 203 dpi shrinks on one of 300.",
    ),
    (
        "keep the weather sensors on the roof talking",
        "Spread reconnects with `jitter_{n}()` over two minutes, because sensors that all return at once knock the broker over.",
    ),
)  # fmt: skip
#: Two that cannot both be right.
_OPPOSITES: Final = (
    (
        "keep the audit log complete when the machine loses power",
        "Always flush `audit_log_{n}` after each entry, because a power cut loses what the buffer still holds.",
    ),
    (
        "make the audit log fast when many people work",
        "Never flush `audit_log_{n}` after each entry, because a power cut loses what the buffer still holds.",
    ),
)
#: It sounds well, and every work that follows it fails.
_HARMFUL: Final = (
    "keep the booking of payments running whatever happens",
    "Wrap every call of `book_payment_{n}()` in a bare `except`, so that the nightly booking of payments never stops.",
)
_HARMED: Final = "make the nightly booking of payments of branch {i} go on and never stop"
_REWORDED: Final = (
    (0, "In the session of `export_nightly_{n}()`, give a timeout of 30 s, because one slow query holds up every later one."),
    (1, "Page through `invoice_rows_{n}` by key, not by offset, because a deep offset reads every row that is before it."),
    (10, "Ask with `label_dpi_{n}()` the printer for its resolution, because a label drawn for 203 dpi shrinks on one of 300."),
)  # fmt: skip
_VAGUE: Final = (
    "Always be careful when you change the export, because others depend on it.",
    "Always handle errors properly, because customers notice.",
    "Make sure to follow best practices when you touch payments, because they matter.",
)
# The key that the vendor's own documentation uses as an example.
_PRIVATE: Final = (
    "Always set `aws_access_key_id=AKIAIOSFODNN7EXAMPLE` for upload {i} of the export, because it is refused without.",
    "Always mail export.team@example.org before upload {i} of the export, because they hold the other half of the key.",
)
_WITHDRAWN: Final = "Start `draft_{n}_{i}()` twice whenever draft {i} is empty, because the first start only warms it up."
_DAILY: Final = (
    "fix a flaky test of the price list of supplier {i}",
    "speed up the search for product {i}",
    "print the label of parcel {i}",
    "show invoice {i} to its customer",
    "draw the sales of week {i}",
    "resize photograph {i} of the shop's window",
    "add field {i} to the nightly export",
    "send letter {i} again",
    "call requests.post for a long export of customer {i}",
    "rename column {i} without stopping the shop",
)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A task, and the sentence that the agent says it learned from it."""

    task: str
    text: str

    @property
    def response(self) -> str:
        return LABEL.format(self.text)


@dataclass(frozen=True, kw_only=True)
class Script:
    """The words of one run."""

    n: int  # which run, from 1

    def _lesson(self, task: str, text: str) -> Lesson:
        return Lesson(task=task, text=text.format(n=self.n))

    def taught(self) -> list[Lesson]:
        """Concrete and new; the last two contradict each other."""
        return [self._lesson(*told) for told in (*_TAUGHT, *_OPPOSITES)]

    def harmful(self) -> Lesson:
        return self._lesson(*_HARMFUL)

    def harmed(self, i: int) -> str:
        """A task that the harmful lesson fits."""
        return _HARMED.format(i=i)

    def repeated(self) -> list[Lesson]:
        """Lessons that are there already, word for word."""
        return self.taught()[:3]

    def reworded(self) -> list[Lesson]:
        """Lessons that are there already, in other words."""
        return [self._lesson(_TAUGHT[at][0], text) for at, text in _REWORDED]

    def vague(self) -> list[Lesson]:
        return [self._lesson(f"improve part {i} of the shop", text) for i, text in enumerate(_VAGUE)]

    def private(self) -> list[Lesson]:
        """With what nobody may be told."""
        return [self._lesson(f"upload part {i} of the export", text.replace("{i}", f"{i}")) for i, text in enumerate(_PRIVATE)]

    def withdrawn(self, i: int) -> Lesson:
        """Accepted at first, and rejected at second sight."""
        return self._lesson(f"look after draft {i}", _WITHDRAWN.replace("{i}", f"{i}"))


def daily(i: int) -> str:
    """A day's work, from which nothing is learned."""
    return _DAILY[i % len(_DAILY)].format(i=i)


def verdicts(i: int) -> tuple[str, ...]:
    """What is said of a day's work, in order: mostly well, sometimes not at first, now and then nothing."""
    if i % 17 == 16:
        return ()
    if i % 13 == 12:
        return ("failed", "accepted")
    if i % 11 == 10:
        return ("compiled",)
    return ("edited",) if i % 7 == 6 else ("accepted",)
