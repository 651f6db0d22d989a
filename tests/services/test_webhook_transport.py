"""A webhook's request goes where it was vetted to go, once, and no receiver can hold, flood or lead it astray."""

import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memory.rules.webhooks import networks, target
from memory.services.webhooks import transport
from memory.services.webhooks.transport import Answer, Undelivered, post
from tests.services.receiver import Receiver, receiving

LOOPBACK = networks("127.0.0.1/32")


@pytest.fixture
def receiver(_running: Receiver) -> Receiver:
    _running.forget()
    return _running


class Names:
    """A name server that answers something else each time; the last answer stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked += 1
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


def send(url: str, **options: Any) -> Answer:
    return post(target(url), [("X-Test", "1")], b"{}", **{"allowed": LOOPBACK, **options})


def test_the_answers_status_and_what_it_asks_for_come_back(receiver: Receiver) -> None:
    assert send(f"{receiver.url}?a=b") == Answer(status=200, retry_after=None)
    (got,) = receiver.received
    assert (got.path, got.body) == ("/in?a=b", b"{}")
    assert (got.headers["host"], got.headers["x-test"]) == (f"127.0.0.1:{receiver.port}", "1")
    receiver.says(503, "Retry-After: 120")
    assert send(receiver.url) == Answer(status=503, retry_after=120.0)
    receiver.says(503, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT")
    assert send(receiver.url).retry_after is None


def test_a_name_is_resolved_once_and_the_vetted_address_is_the_one_that_is_reached(receiver: Receiver) -> None:
    rebinding = Names(["127.0.0.1"], ["169.254.169.254"])
    assert send(f"http://hooks.example.com:{receiver.port}/", resolve=rebinding).status == 200
    assert rebinding.asked == 1
    assert send(f"http://[::1]:{receiver.port}/", resolve=Names(["127.0.0.1"])).status == 200
    hosts = [got.headers["host"] for got in receiver.received]
    assert hosts == [f"hooks.example.com:{receiver.port}", f"[::1]:{receiver.port}"]


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "127.0.0.2", "10.0.0.1", "::1", "fd00::1", "0.0.0.0", "::ffff:169.254.169.254"]
)
def test_a_name_that_leads_where_it_must_not_is_refused_without_a_connection(
    receiver: Receiver, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it was connected to"))
    for scheme in ("http", "https"):
        with pytest.raises(Undelivered, match="which is"):
            send(f"{scheme}://hooks.example.com:{receiver.port}/", resolve=Names([address]))
    assert receiver.received == []


def test_of_several_addresses_those_that_may_be_reached_are_tried(receiver: Receiver) -> None:
    several = Names(["169.254.169.254", "10.9.8.7", "127.0.0.1"])
    assert send(f"http://hooks.example.com:{receiver.port}/", resolve=several).status == 200


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "017700000001", "localhost", "[::ffff:7f00:1]"])
def test_no_spelling_of_loopback_is_reached_where_nobody_allowed_it(receiver: Receiver, host: str) -> None:
    with pytest.raises(Undelivered):
        send(f"https://{host}:{receiver.port}/", allowed=())
    assert receiver.received == []


def test_plain_http_is_for_loopback_alone() -> None:
    with pytest.raises(Undelivered, match="by https only"):
        send("http://hooks.example.com/", resolve=Names(["93.184.216.34"]))


def test_a_name_that_is_none_is_told() -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror("no such name")

    with pytest.raises(Undelivered, match="cannot be resolved"):
        send("https://hooks.example.com/", resolve=unknown)


def test_a_redirect_is_an_answer_and_not_followed(receiver: Receiver) -> None:
    receiver.says(302, f"Location: {receiver.url}/elsewhere")
    assert send(receiver.url).status == 302
    receiver.says(307, "Location: http://169.254.169.254/latest/meta-data/")
    assert send(receiver.url).status == 307
    assert [got.path for got in receiver.received] == ["/in", "/in"]


def test_a_body_is_not_read_however_long_it_is(receiver: Receiver) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 3_000_000
    receiver.drips = True
    began = time.monotonic()
    assert send(receiver.url).status == 200
    assert time.monotonic() - began < 10


def test_a_head_without_end_is_refused(receiver: Receiver) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 3_000_000
    with pytest.raises(Undelivered):
        send(receiver.url)


def test_a_head_that_drips_ends_with_the_time_for_the_whole(receiver: Receiver) -> None:
    receiver.answer, receiver.drips = b"HTTP/1.1 200 OK\r\nX-Slow: ", True
    with pytest.raises(Undelivered, match="in time"):
        send(receiver.url, total=0.3)


def test_what_is_no_http_and_what_takes_no_connection_is_refused(receiver: Receiver) -> None:
    receiver.answer = b"SSH-2.0-OpenSSH_9.9\r\n"
    with pytest.raises(Undelivered, match="could not be reached"):
        send(receiver.url)
    with pytest.raises(Undelivered):  # it speaks no TLS
        send(receiver.url.replace("http:", "https:"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(Undelivered, match="could not be reached"):
            send(f"http://127.0.0.1:{taken.getsockname()[1]}/")


def certificate(host: str) -> tuple[str, str]:
    """A certificate for a host that nobody vouches for but itself, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), secret.decode()


def test_a_certificate_is_of_the_name_and_vouched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public, secret = certificate("hooks.example.com")
    (tmp_path / "both.pem").write_text(public + secret)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "both.pem")
    here = Names(["127.0.0.1"])
    with receiving(server) as secured:
        with pytest.raises(Undelivered, match="could not be reached"):
            send(f"https://hooks.example.com:{secured.port}/", resolve=here)
        trusting = ssl.create_default_context(cadata=public)
        monkeypatch.setattr(transport, "_tls", lambda: trusting)
        assert send(f"https://hooks.example.com:{secured.port}/", resolve=here).status == 200
        with pytest.raises(Undelivered, match="could not be reached"):
            send(f"https://other.example.com:{secured.port}/", resolve=here)
        assert len(secured.received) == 1


def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(receiver.url).status == 200
