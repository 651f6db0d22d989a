import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.claim import (
    AXES,
    SIGNATURE_VERSION,
    ClaimSignature,
    Comparison,
    anchors,
    same_claim,
    signature,
)

SAME = [
    # another wording of one directive
    ("Avoid bare except clauses in worker loops.", "Never use bare except clauses in worker loops."),
    ("Do not use mutable default arguments.", "Avoid mutable default arguments."),
    ("Don't hold a transaction open across a network call.", "Never hold a transaction open across a network call."),
    ("Always validate the payload before parsing it.", "Validate the payload before parsing it."),
    ("Make sure to close the cursor after the query.", "Always close the cursor after the query."),
    ("You should never force-push a shared branch.", "Never force-push a shared branch."),
    ("Never, under any circumstances, log a bearer token.", "Do not log a bearer token."),
    ("Please avoid SELECT * in production queries.", "Never SELECT * in production queries."),
    (
        "Clients must not retry a POST without an idempotency key.",
        "Clients should never retry a POST without an idempotency key.",
    ),
    ("Refrain from catching BaseException in tasks.", "Avoid catching BaseException in tasks."),
    ("Stop using pickle.loads on untrusted bytes.", "Never call pickle.loads on untrusted bytes."),
    ("Reject non-finite values in authoritative input.", "Never accept non-finite values in authoritative input."),
    # two negations cancel
    ("Never hold a lock without a timeout.", "Always hold a lock with a timeout."),
    ("Don't call an outbound API without a timeout.", "Call an outbound API with a timeout."),
    ("Never skip certificate validation.", "Always do certificate validation."),
    ("Don't forget to close the file handle.", "Remember to close the file handle."),
    ("Never ignore the return code of a subprocess.", "Always check the return code of a subprocess."),
    ("Never use a list instead of a set for membership tests.", "Use a set instead of a list for membership tests."),
    ("Do not disable TLS verification.", "Enable TLS verification."),
    # the sign is that of the directive, not of its reasons, purposes and rejected alternatives
    ("Use hmac.compare_digest for secrets, never ==.", "Use hmac.compare_digest for secrets."),
    ("Use cursors for pagination — never raw offsets, they skip rows.", "Use cursors for pagination."),
    ("Use a set for membership tests to avoid O(n) scans.", "Use a set for membership tests."),
    ("Cap label cardinality - never use raw user ids as tags.", "Always cap label cardinality."),
    ("Pin the locale in tests so that dates never depend on the machine.", "Pin the locale in tests."),
    ("Batch the writes, don't commit per row.", "Batch the writes."),
    ("Mark commits that won't build with `git bisect skip`.", "Mark commits that cannot build with `git bisect skip`."),
    (
        "Fall back to valgrind when ASan can't be built into the target.",
        "Fall back to valgrind if ASan is unavailable.",
    ),
    (
        "If the row does not exist, insert it with ON CONFLICT DO NOTHING.",
        "Insert the row with ON CONFLICT DO NOTHING if it is missing.",
    ),
    (
        "Use RLock (not Lock) when a locked method calls another.",
        "Use RLock when a locked method calls another locked method.",
    ),
    ("On Windows, never bind with SO_REUSEADDR.", "Never bind with SO_REUSEADDR on Windows."),
    (
        "In worker threads, in callbacks, and in signal handlers, never log.",
        "Never log in worker threads, callbacks or signal handlers.",
    ),
    ("Security: never log a password.", "Never log a password."),
    ("Check that assertions target behaviour, not call sequences.", "Make assertions target behaviour."),
    # order told from either end
    ("Call gc.freeze() before os.fork().", "Call os.fork() after gc.freeze()."),
    (
        "Before calling send(), prime the coroutine with next().",
        "Prime the coroutine with next() before calling send().",
    ),
    ("Before merging, rebase onto main.", "Rebase onto main before merging."),
    # preference told in other words
    ("Prefer rebase over merge for local commits.", "Use rebase instead of merge for local commits."),
    ("Use tabs rather than spaces in makefiles.", "In makefiles, use tabs instead of spaces."),
    (
        "Replace offset pagination with keyset pagination on deep pages.",
        "Use keyset pagination, not offset pagination, on deep pages.",
    ),
    (
        "Instead of time.time(), use time.monotonic() for durations.",
        "Use time.monotonic(), not time.time(), for durations.",
    ),
    (
        "Use heapq.nlargest(k, data) instead of sorting everything.",
        "Use heapq.nlargest(k, data) rather than a full sort of the list.",
    ),
    (
        "Switch from datetime.utcnow to datetime.now for aware times.",
        "Use datetime.now instead of datetime.utcnow for aware times.",
    ),
    # anchors in other spellings
    ("Use `functools.lru_cache` for pure functions.", "Use lru_cache for pure functions."),
    ("Cache pure functions with @functools.lru_cache(maxsize=None).", "Cache pure functions with functools.lru_cache."),
    ("Set the read timeout to 30 seconds.", "Set the read timeout to 30s."),
    ("Retry three times on a timeout.", "Retry 3 times on a timeout."),
    ("Look the key up in a dict for O( 1 ) access.", "Look the key up in a dict for O(1) access."),
    ("Push with --force-with-lease.", "Use `--force-with-lease` to push."),
    ("Catch asyncio.TimeoutError around the await.", "Catch TimeoutError around the await."),
    ("Clamp with std::clamp before the cast.", "Clamp with `std::clamp` before the cast."),
    # look-alike letters and invisible characters hide no anchor
    ("Use functools.lru_cache for pure functions.", "Use funct\u043e\u200bols.lru_\u0441ache for pure functions."),
    # an axis or kind that only one of them carries decides nothing
    (
        "Use a bounded queue between producer and consumer.",
        "Use a bounded queue with 100 slots between producer and consumer.",
    ),
    (
        "Sort the intervals, then merge overlaps in one pass.",
        "Sort the intervals with sorted(key=start), then merge overlaps.",
    ),
]

DIFFERENT = [
    # prohibition
    ("Always retry the request on timeout.", "Never retry the request on timeout.", "polarity:prohibition"),
    ("Use floats for money.", "Do not use floats for money.", "polarity:prohibition"),
    ("Use a global lock in the registry.", "Avoid a global lock in the registry.", "polarity:prohibition"),
    ("Do commit generated files.", "Don't commit generated files.", "polarity:prohibition"),
    ("Retry on HTTP 429.", "On HTTP 429, do not retry.", "polarity:prohibition"),
    (
        "Workers should acknowledge the task late.",
        "Workers should never acknowledge the task late.",
        "polarity:prohibition",
    ),
    (
        "Ensure that the handler blocks the signal.",
        "Ensure that the handler never blocks the signal.",
        "polarity:prohibition",
    ),
    (
        "It is safe to share the connection between threads.",
        "It is never safe to share the connection between threads.",
        "polarity:prohibition",
    ),
    ("Skip stale heap entries on pop.", "Never skip stale heap entries on pop.", "polarity:prohibition"),
    ("Try to mock the clock in tests.", "Try to avoid mocking the clock in tests.", "polarity:prohibition"),
    ("Prefer to vendor the parser.", "Prefer not to vendor the parser.", "polarity:prohibition"),
    (
        "Use eval on config files — it never fails.",
        "Never use eval on config files — it always fails.",
        "polarity:prohibition",
    ),
    ("Allow nulls in the key column.", "Forbid nulls in the key column.", "polarity:prohibition"),
    (
        "Bind user input into the template as data.",
        "For template engines, never bind user input into the template.",
        "polarity:prohibition",
    ),
    ("No global state in request handlers.", "Keep global state in request handlers.", "polarity:prohibition"),
    ("Avoid time.sleep in tests; use an event.", "Use time.sleep in tests.", "polarity:prohibition"),
    ("If the cache is cold, don't prefetch.", "If the cache is cold, prefetch.", "polarity:prohibition"),
    ("You must not widen the scope.", "You must widen the scope.", "polarity:prohibition"),
    # inclusion
    ("Add the index with CONCURRENTLY.", "Add the index without CONCURRENTLY.", "polarity:inclusion"),
    ("Open the connection with a timeout.", "Open the connection without a timeout.", "polarity:inclusion"),
    ("Call the API without a timeout.", "Never call the API without a timeout.", "polarity:inclusion"),
    ("Enable autocommit for migrations.", "Disable autocommit for migrations.", "polarity:inclusion"),
    # direction
    ("Increase the pool size under load.", "Decrease the pool size under load.", "polarity:direction"),
    ("Use a larger batch for embeddings.", "Use a smaller batch for embeddings.", "polarity:direction"),
    (
        "Raise the file descriptor limit for the proxy.",
        "Lower the file descriptor limit for the proxy.",
        "polarity:direction",
    ),
    ("Iterate the dp array backwards.", "Iterate the dp array forwards.", "polarity:direction"),
    ("Sort the intervals in ascending order.", "Sort the intervals in descending order.", "polarity:direction"),
    ("Round up when splitting pages.", "Round down when splitting pages.", "polarity:direction"),
    # order
    ("Run the migration before the deploy.", "Run the migration after the deploy.", "polarity:order"),
    (
        "Release the lock before notifying the waiters.",
        "Release the lock after notifying the waiters.",
        "polarity:order",
    ),
    ("Before deploying, drain the queue.", "After deploying, drain the queue.", "polarity:order"),
    ("Call gc.freeze() before os.fork().", "Call os.fork() before gc.freeze().", "polarity:order"),
    # preference
    ("Prefer tabs instead of spaces.", "Prefer spaces instead of tabs.", "polarity:preference"),
    ("Prefer composition over inheritance.", "Prefer inheritance over composition.", "polarity:preference"),
    (
        "Use `functools.reduce` instead of a manual loop.",
        "Use a manual loop instead of `functools.reduce`.",
        "polarity:preference",
    ),
    ("Use re.finditer instead of re.findall.", "Use re.findall instead of re.finditer.", "polarity:preference"),
    ("Use rebase, not merge.", "Use merge, not rebase.", "polarity:preference"),
    (
        "Store tokens in cookies rather than in localStorage.",
        "Store tokens in localStorage rather than in cookies.",
        "polarity:preference",
    ),
    (
        "Replace merge commits with rebased commits.",
        "Replace rebased commits with merge commits.",
        "polarity:preference",
    ),
    ("Never use a list instead of a set.", "Use a list instead of a set.", "polarity:preference"),
    (
        "Use a bounded queue rather than an unbounded buffer.",
        "Use an unbounded buffer rather than a bounded queue.",
        "polarity:preference",
    ),
    # anchors
    ("Use functools.lru_cache for pure functions.", "Use functools.cache for pure functions.", "anchor:identifier"),
    ("Persist the state with json.dump.", "Persist the state with pickle.dump.", "anchor:identifier"),
    ("Pass work between tasks with asyncio.Queue.", "Pass work between threads with queue.Queue.", "anchor:identifier"),
    ("Use SO_REUSEADDR on the listener.", "Use SO_REUSEPORT on the listener.", "anchor:identifier"),
    ("Hash the file with sha256.", "Hash the file with md5.", "anchor:identifier"),
    ("Use time.monotonic() for durations, not time.time().", "Use time.time() for durations.", "anchor:identifier"),
    ("Support Python 2 in the build script.", "Support Python 3 in the build script.", "anchor:number"),
    (
        "In Python 3.11, import tomllib for the config.",
        "In Python 3.10, import tomllib for the config.",
        "anchor:number",
    ),
    ("Set the timeout to 30 s.", "Set the timeout to 30 ms.", "anchor:number"),
    ("Give up after 3 attempts.", "Give up after five attempts.", "anchor:number"),
    ("Cap the page size at 100 rows.", "Cap the page size at 1,000 rows.", "anchor:number"),
    ("Look up members in O(1).", "Look up members in O(n).", "anchor:complexity"),
    ("Merge the lists in O(n log n).", "Merge the lists in O(n+m).", "anchor:complexity"),
    ("Push with --force after a rebase.", "Push with --force-with-lease after a rebase.", "anchor:flag"),
    (
        "Compile with -fsanitize=thread for the nightly run.",
        "Compile with -fsanitize=address for the nightly run.",
        "anchor:flag",
    ),
    ("Put the unit file in /etc/systemd/system.", "Put the unit file in /usr/lib/systemd/system.", "anchor:path"),
    ("Keep the defaults in settings.toml.", "Keep the defaults in settings.yaml.", "anchor:path"),
    ("Catch KeyError around the lookup.", "Catch IndexError around the lookup.", "anchor:error"),
    ("Retry the write on EAGAIN.", "Retry the write on ENOSPC.", "anchor:error"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_another_wording_makes_the_same_claim(first: str, second: str) -> None:
    assert same_claim(signature(first), signature(second)) == Comparison(same=True, reason="")
    assert same_claim(signature(second), signature(first)).same


@pytest.mark.parametrize(("first", "second", "reason"), DIFFERENT)
def test_an_opposite_or_another_subject_is_another_claim(first: str, second: str, reason: str) -> None:
    assert same_claim(signature(first), signature(second)) == Comparison(same=False, reason=reason)
    assert same_claim(signature(second), signature(first)) == Comparison(same=False, reason=reason)


def test_there_are_many_labelled_pairs_of_both_kinds_and_of_every_reason() -> None:
    assert len(SAME) >= 50
    assert len(DIFFERENT) >= 60
    axes = {reason for _, _, reason in DIFFERENT if reason.startswith("polarity:")}
    assert axes == {f"polarity:{axis}" for axis in AXES}
    kinds = {reason for _, _, reason in DIFFERENT if reason.startswith("anchor:")}
    assert kinds == {f"anchor:{kind}" for kind in ("identifier", "number", "complexity", "flag", "path", "error")}


def test_every_directive_carries_prohibition_and_other_axes_only_where_it_touches_them() -> None:
    assert signature("Close the file.").polarity == {"prohibition": 1}
    assert signature("Never close the file.").polarity == {"prohibition": -1}
    assert signature("Use A with care before lunch.").polarity == {"prohibition": 1, "inclusion": 1, "order": 1}
    assert signature("Sort with a key, without a comparator.").polarity == {"prohibition": 1}, "both: neither"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Use functools.lru_cache.", {"identifier": {"functools.lru_cache", "lru_cache"}}),
        ("Use `yield` in os.walk and std::clamp.", {"identifier": {"yield", "os.walk", "std.clamp"}}),
        ("Wait 30 seconds, 1.5 s, 250ms or two minutes.", {"number": {"30s", "1.5s", "250ms", "2min"}}),
        ("Cap it at 1,000 rows and 80%.", {"number": {"1000", "80%"}}),
        ("Support RFC 7807, SHA-256 and Python 3.11.", {"number": {"7807", "256", "3.11"}}),
        ("Take O(n log n), O(N^2), not O( 1 ).", {"complexity": {"o(nlogn)", "o(n2)", "o(1)"}}),
        ("Pass --force, -x and --tool=memcheck.", {"flag": {"--force", "-x", "--tool=memcheck"}}),
        ("Edit /etc/hosts, ~/.ssh/config and src/app.py.", {"path": {"/etc/hosts", "~/.ssh/config", "src/app.py"}}),
        ("Ignore *.pyc and C:\\Temp\\x.", {"path": {"*.pyc", "c:\\temp\\x"}}),
        (
            "Catch KeyError, asyncio.TimeoutError, EAGAIN and SIGTERM.",
            {"error": {"keyerror", "timeouterror", "eagain", "sigterm"}},
        ),
        ("Set it to dp[i-1] or n//2 and/or read/write one thing.", {}),
        ("Nothing to hold on to here.", {}),
    ],
)
def test_anchors_are_normalised_by_kind(text: str, kinds: dict[str, set[str]]) -> None:
    assert anchors(text) == {kind: frozenset(values) for kind, values in kinds.items()}


def test_a_signature_carries_the_anchors_of_its_directive() -> None:
    """Not those of reasons, of rejected alternatives, or of what a prohibition recommends instead."""
    assert signature("Use a.bc — it avoids d.ef.").anchors == {"identifier": {"a.bc"}}
    assert signature("Use a.bc instead of d.ef.").anchors == {"identifier": {"a.bc"}}
    assert signature("Never use a.bc; use d.ef.").anchors == {"identifier": {"a.bc"}}
    assert signature("In Python 3.11, use a.bc.").anchors == {"identifier": {"a.bc"}, "number": {"3.11"}}
    assert signature("Cache it — a.bc is there for that.").anchors == {"identifier": {"a.bc"}}, "for want of any"


@given(st.text(max_size=120))
def test_any_text_makes_the_same_claim_as_itself(text: str) -> None:
    assert same_claim(signature(text), signature(text)) == Comparison(same=True, reason="")


@given(st.sampled_from([text for pair in SAME for text in pair] + [text for a, b, _ in DIFFERENT for text in (a, b)]))
def test_case_of_the_first_letter_white_space_and_a_full_stop_make_no_difference(text: str) -> None:
    varied = "  " + text[0].lower() + text[1:].rstrip(".").replace(" ", "\n ") + " ."
    assert signature(varied) == signature(text)


@given(st.sampled_from([text for pair in SAME for text in pair]))
def test_a_signature_survives_json(text: str) -> None:
    original = signature(text)
    assert ClaimSignature.from_json(json.loads(json.dumps(original.to_json()))) == original


def test_json_is_plain_and_sorted() -> None:
    assert signature("Never push with --force or -f before 3 s.").to_json() == {
        "polarity": {"prohibition": -1, "inclusion": 1, "order": 1},
        "anchors": {"number": ["3s"], "flag": ["--force", "-f"]},
    }


@pytest.mark.parametrize(
    "data",
    [
        {"polarity": {"prohibition": 0}, "anchors": {}},
        {"polarity": {"mood": 1}, "anchors": {}},
        {"polarity": {"prohibition": "1"}, "anchors": {}},
        {"polarity": {}, "anchors": {"colour": ["red"]}},
        {"polarity": {}, "anchors": {"flag": "--x"}},
    ],
)
def test_json_of_another_shape_is_refused(data: dict[str, dict[str, int]]) -> None:
    with pytest.raises(ValueError, match=r"Not a polarity|No anchors"):
        ClaimSignature.from_json(data)


def test_what_only_one_side_carries_decides_nothing() -> None:
    full = ClaimSignature(polarity={"prohibition": 1, "order": -1}, anchors={"number": frozenset({"3"})})
    bare = ClaimSignature(polarity={"prohibition": 1}, anchors={"flag": frozenset({"-x"})})
    assert same_claim(full, bare).same
    assert not same_claim(full, dataclasses.replace(bare, polarity={"order": 1})).same


def test_the_version_changes_with_the_signatures() -> None:
    """A changed signature needs a new version, or older tombstones would be compared with it."""
    texts = [text for pair in SAME for text in pair] + [text for a, b, _ in DIFFERENT for text in (a, b)]
    written = json.dumps([signature(text).to_json() for text in texts], sort_keys=True)
    assert (SIGNATURE_VERSION, hashlib.sha256(written.encode()).hexdigest()) == (
        1,
        "cb47d1dcc72f2a354fbc9ba813d00b64a8656ecf03892169e2b05edda1266c33",
    )
