import socket
import threading
import time

import pytest
from detect_secrets.settings import get_settings
from hypothesis import given
from hypothesis import strategies as st

from memory.rules.privacy import KINDS, find_private

PRIVATE = [
    # secrets that the library knows
    ("Set password = 'correcthorse9' in the settings module.", ("secret",)),
    ('Read api_key: "AbCdEf1234567890" from the header.', ("secret",)),
    ("Connect with postgres://app:s3cr3t@localhost/app first.", ("secret",)),
    ("Sign with '5f4dcc3b5aa765d61d8327deb882cf99a1b2c3d4'.", ("secret",)),
    ("Salt with 'c3VwZXIgbG9uZyBzdHJpbmcgc2hvdWxkIGNhdXNlIGVub3VnaCBlbnRyb3B5'.", ("secret",)),
    ("Paste -----BEGIN RSA PRIVATE KEY----- into the agent.", ("secret",)),
    ("Paste -----BEGIN OPENSSH PRIVATE KEY-----", ("secret",)),
    # assignments without quotes
    ("Export DB_PASSWORD=Tr0ub4dor&3 before the run.", ("secret",)),
    ("Send token: 9f8e7d6c5b4a3210 with each call.", ("secret",)),
    ("Pass --api-key=abcd1234efgh5678 to the client.", ("secret",)),
    # e-mail addresses
    ("Ask jane.doe+ops@mail.example.org about the quota.", ("email",)),
    ("Set git config user.email to j_d@example.co.uk first.", ("email",)),
    ("Mail JANE@EXAMPLE.COM when it fails.", ("email",)),
    # home paths
    ("Look in /home/jane/project/settings.py for it.", ("home_path",)),
    ("Look in /Users/jane for it.", ("home_path",)),
    ("Look in C:\\Users\\jane\\AppData for it.", ("home_path",)),
    ("Look in c:/Users/jane/AppData for it.", ("home_path",)),
    ("Look in /root/.ssh for it.", ("home_path",)),
    ("Open file:///home/jane/notes.md for it.", ("home_path",)),
    # token shapes
    ("Use sk-proj-abc123def456ghi789jkl for the call.", ("token",)),
    ("Use sk-ant-api03-AbCd1234EfGh5678 for the call.", ("token",)),
    ("Use sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc for the call.", ("secret", "token")),
    ("Use ghp_" + "a1B2c3D4e5F6" * 3 + " for the call.", ("secret", "token")),
    ("Use github_pat_11ABCDEFG0abcdefghijkl for the call.", ("token",)),
    ("Use glpat-" + "x9Y8z7W6v5U4t3S2r1Q0" + " for the call.", ("secret", "token")),
    ("Use AKIAIOSFODNN7EXAMPLE for the call.", ("secret", "token")),
    ("Use xoxb-" + "123456789012-abcdefABCDEF for the call.", ("secret", "token")),
    ("Use AIza" + "SyA1234567890abcdefghijklmnopqrstuv for the call.", ("token",)),
    ("Use hf_AbCdEfGhIjKlMnOpQrStUvWx for the call.", ("token",)),
    ("Send eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl along.", ("secret", "token")),
    ("Send Authorization: Bearer abcdef1234567890abcd along.", ("token",)),
    ("Send Authorization: Basic b2xpdmU6aHVudGVyMmh1bnRlcjI= along.", ("token",)),
    # several
    ("Mail jane@example.com the file /home/jane/x.", ("email", "home_path")),
    # hidden from a careless eye
    ("Mail jane\u200b@ex\u0430mple.com about it.", ("email",)),
    ("Use AKIA\u2060IOSFODNN7EXAMPLE for the call.", ("secret", "token")),
    ("Set password = \u201ccorrecthorse9\u201d there.", ("secret",)),
]

HEX = "3ec7592a2178caeb46f1bd56dfec81a4"
MIXED = "h6X2pQ9sVb4KtR7mWz3JdN8yLcF5gT1a"
#: A key of each kind that is common, whole and made up.
KEYS = {
    "this product": "sonder_" + "h7u5w2rnkj6z_" + MIXED + "o2YXhVSvcch",
    "Google OAuth": "GOCSPX-" + MIXED,
    "Slack app": "xapp-1-" + "A0VJJXFGXDA-7024531736010-" + HEX,
    "webhook": "whsec_" + "oHXayyeBXiE3fKGnzGl7tEGARZlC2VRjgBkj5e2Quo0",
    "DigitalOcean": "dop_v1_" + HEX * 2,
    "Databricks": "dapi" + HEX,
    "Supabase": "sbp_" + HEX + "0c5b9e27",
    "Shopify": "shpat_" + HEX,
    "Vault": "hvs." + "CAESI" + MIXED,
    "Linear": "lin_api_" + MIXED + "x7Qw2Rt9",
    "Notion": "ntn_" + MIXED + "x7Qw2Rt9Zk3B",
    "Docker": "dckr_pat_" + MIXED,
    "Tailscale": "tskey-auth-" + "kZ8x2Q7CNTRL-" + MIXED,
    "Mailgun": "key-" + HEX,
    "age": "AGE-SECRET-KEY-1" + "QZ3X7P9W5R2T8V4M6K0J" * 2 + "QZ3X7P9W5R2T8V4M6K",
    "GitHub": "ghp_" + MIXED + "9sVb",
    "OpenAI": "sk-proj-" + MIXED,
    "Stripe": "sk_" + "live_" + MIXED[:24],
    "AWS": "AKIA" + "QZ3X7P9W5R2T8V4M",
}

HARMLESS = [
    "Compare secrets like password hashes or API tokens with hmac.compare_digest, never `==`.",
    "Never store passwords with a fast hash; the password: it belongs to the user.",
    "Read the password from os.environ['DB_PASSWORD'] at start-up.",
    "Use token = secrets.token_urlsafe(32) for session ids.",
    "Set password = '${DB_PASSWORD}' in the compose file.",
    "Rotate the token every 24 hours and the secret every 90 days.",
    "Clone git@github.com:org/repo.git over ssh.",
    "Pin react@18.2.0 and left-pad@^1.3.0 in package.json.",
    "Multiply with a @ b, or x@y.T for the transpose.",
    "Decorate with @functools.lru_cache or @app.get('/users').",
    "Put keys in ~/.ssh/config and units in /etc/systemd/system.",
    "Serve GET /users/{id} and https://example.com/home/page.",
    "Build in /usr/local/src, /var/lib/app or ./home/build.",
    "Bind to 0.0.0.0 in a container and resolve with 8.8.8.8.",
    "Use sk-learn style estimators and risk-based scheduling.",
    "Keep a charset literal such as '0123456789abcdef' in one place.",
    "Compare the UUID '123e4567-e89b-12d3-a456-426614174000' as bytes.",
    "Use Bearer authentication schemes instead of custom headers.",
    "Encode the algorithm inside the stored hash string itself (e.g. $argon2id$v=19$m=...).",
    "Use zip_longest(*[iter(iterable)]*n, fillvalue=x) to chunk.",
    "Verify it against a known strong pseudoprime like 341550071728321.",
    "总是为网络请求设置超时。",
    "",
]


@pytest.mark.parametrize(("text", "kinds"), PRIVATE)
def test_private_matter_is_found_by_kind(text: str, kinds: tuple[str, ...]) -> None:
    assert find_private(text) == kinds


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_found_in_whatever_sentence_it_stands(kind: str) -> None:
    for sentence in (
        "Call the deploy hook with {} before the migration runs.",
        "Set `{}` as the header of `requests.get`.",
        "The proxy wants '{}', because it strips cookies.",
        "curl -H 'X-Auth: {}' https://api.example.com/v1/items",
        "{}",
    ):
        assert "token" in find_private(sentence.format(KEYS[kind])), sentence


@pytest.mark.parametrize("kind", KEYS)
def test_the_beginning_of_a_key_is_talk(kind: str) -> None:
    assert find_private(f"Keys begin with {KEYS[kind][:10]} here.") == ()


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_secrets_and_code_is_harmless(text: str) -> None:
    assert find_private(text) == ()


@pytest.mark.parametrize(("text", "kinds"), PRIVATE)
def test_private_matter_is_found_inside_a_longer_text(text: str, kinds: tuple[str, ...]) -> None:
    padding = "Use a bounded queue between producer and consumer so that memory stays flat. " * 8
    assert find_private(f"{padding}\n{text} {padding}") == kinds
    assert find_private(f"{padding}{text}\n{padding}") == kinds


def test_only_kinds_are_returned_never_the_matched_text() -> None:
    for text, _ in PRIVATE:
        assert set(find_private(text)) <= set(KINDS)


@given(st.text(max_size=300))
def test_any_text_can_be_searched(text: str) -> None:
    assert list(find_private(text)) == [kind for kind in KINDS if kind in find_private(text)]


def test_searching_prints_nothing_and_reaches_no_network(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("A search for secrets must not open a connection.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for text, kinds in PRIVATE:
        assert find_private(text) == kinds
    assert capfd.readouterr() == ("", "")


def test_threads_find_the_same_and_leave_the_library_s_settings_alone() -> None:
    before = get_settings().json()
    wrong: list[str] = []

    def search() -> None:
        for _ in range(5):
            wrong.extend(text for text, kinds in PRIVATE if find_private(text) != kinds)
            wrong.extend(text for text in HARMLESS if find_private(text))

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert get_settings().json() == before


@pytest.mark.parametrize(
    "unit", ["password", "password='", "a@", "a.", "/home", "eyJ", "sk-", "token ", "pwd:", '"', "-----BEGIN "]
)
def test_hostile_repetition_is_searched_quickly(unit: str) -> None:
    start = time.perf_counter()
    find_private((unit * 2000)[:2000])
    assert time.perf_counter() - start < 2
