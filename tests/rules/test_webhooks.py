"""How webhooks are signed and tried again, and every kind of address that they must not reach."""

import base64
import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.rules import webhooks as rules
from memory.rules.webhooks import Target, networks, refusal, secret_of, signature, target, wait_after, written

ID = UUID("0197a2b0-0000-7000-8000-000000000001")
LOOPBACK = networks("127.0.0.0/8, ::1/128")


class TestSigning:
    def test_agrees_with_the_example_of_the_standard(self) -> None:
        """Standard Webhooks 1.0.0, and the tests of its reference libraries."""
        secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    def test_secrets_are_of_their_salt_and_their_installation_alone(self) -> None:
        made = {secret_of(key, salt) for key in (b"one", b"two") for salt in ("00", "01")}
        assert len(made) == 4
        assert {len(secret) for secret in made} == {32}
        assert written(secret_of(b"one", "00")) == written(secret_of(b"one", "00"))
        assert written(b"\x00" * 32) == "whsec_" + "A" * 43 + "="


class TestWaiting:
    @given(delivery=st.uuids(), attempt=st.integers(1, 40))
    def test_grows_fourfold_to_half_a_day_within_a_quarter(self, delivery: UUID, attempt: int) -> None:
        plain = min(rules.LONGEST_WAIT, rules.FIRST_WAIT * 4 ** (attempt - 1))
        assert 0.75 * plain <= wait_after(delivery, attempt) <= 1.25 * plain
        assert wait_after(delivery, attempt) == wait_after(delivery, attempt)

    def test_spreads_what_failed_together(self) -> None:
        waits = [wait_after(UUID(int=n), 1) for n in range(200)]
        assert len(set(waits)) == 200
        assert min(waits) < 24
        assert max(waits) > 36

    def test_a_receiver_may_ask_for_more_time_but_not_for_less_nor_for_ever(self) -> None:
        own = wait_after(ID, 1)
        assert wait_after(ID, 1, asked=1.0) == own
        assert wait_after(ID, 1, asked=3600.0) == 3600.0
        assert wait_after(ID, 1, asked=1e12) == rules.MOST_ASKED
        assert wait_after(ID, 1, asked=math.inf) == own
        assert wait_after(ID, 1, asked=math.nan) == own

    @given(delivery=st.uuids())
    def test_ends_within_three_days_after_a_dozen_attempts(self, delivery: UUID) -> None:
        age, attempts = 0.0, 1
        while not rules.gives_up(age, wait := wait_after(delivery, attempts)):
            age, attempts = age + wait, attempts + 1
        assert age <= rules.GIVE_UP_AFTER
        assert age >= rules.GIVE_UP_AFTER - 1.25 * rules.LONGEST_WAIT
        assert 10 <= attempts <= 14


class TestAddresses:
    def test_are_taken_apart(self) -> None:
        assert target("https://Example.com:8443/in/box?a=b") == Target(
            scheme="https", host="example.com", port=8443, path="/in/box?a=b"
        )
        assert target("https://example.com") == Target(scheme="https", host="example.com", port=443, path="/")
        assert target("http://[::1]/x") == Target(scheme="http", host="::1", port=80, path="/x")

    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("https://example.com:443/", "example.com"),
            ("https://example.com:80/", "example.com:80"),
            ("http://[::1]/", "[::1]"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ],
    )
    def test_are_named_in_requests_as_http_has_it(self, url: str, host: str) -> None:
        assert target(url).authority == host

    @pytest.mark.parametrize(
        "url",
        [
            "", "x" * 501, "example.com/x", "ftp://example.com", "file:///etc/passwd", "gopher://example.com",
            "https://", "https:///x", "https://user@example.com", "https://user:word@example.com",
            "https://example.com/#part", "https://example.com:0", "https://example.com:99999", "https://example.com:x",
            "https://exa mple.com", "https://example.com/\r\nHost: other", "https://example.com\\@other.example",
            "https://bücher.example", "https://[::1", "https://[fe80::1%25eth0]/", "https://example.com/\x00",
        ],
    )  # fmt: skip
    def test_that_are_not_to_be_used_are_refused_with_a_sentence(self, url: str) -> None:
        with pytest.raises(ValueError, match=r"\.$"):
            target(url)

    @pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
    def test_a_public_one_is_reached_over_tls_alone(self, address: str) -> None:
        assert refusal(address, plain=False, allowed=()) == ""
        assert refusal(address, plain=True, allowed=LOOPBACK) == "is reached by https only"

    @pytest.mark.parametrize(
        "address",
        [
            "127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
            "169.254.169.254", "169.254.0.1", "100.64.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
            "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
            "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
            "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "100::1",
            "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a00:1",
        ],
    )  # fmt: skip
    def test_one_that_is_not_public_is_refused_however_it_is_written(self, address: str) -> None:
        assert refusal(address, plain=False, allowed=())
        assert refusal(address, plain=True, allowed=())

    def test_what_an_operator_allows_is_reached_and_plainly_on_loopback_alone(self) -> None:
        allowed = networks("127.0.0.0/8,::1/128,10.20.0.0/16,fd00::/8,100.64.0.0/10")
        for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            assert refusal(address, plain=True, allowed=allowed) == refusal(address, plain=False, allowed=allowed) == ""
        for address in ("10.20.3.4", "fd00::7", "::ffff:10.20.3.4", "100.64.0.1"):
            assert refusal(address, plain=False, allowed=allowed) == ""
            assert refusal(address, plain=True, allowed=allowed)
        assert refusal("10.21.0.1", plain=False, allowed=allowed)

    @pytest.mark.parametrize(
        "address",
        [
            "169.254.169.254", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fe80::1", "224.0.0.1", "0.0.0.0",
            "2002:7f00:1::",
        ],
    )  # fmt: skip
    def test_metadata_multicast_and_tunnels_are_reached_by_nobodys_leave(self, address: str) -> None:
        assert refusal(address, plain=False, allowed=networks("0.0.0.0/0,::/0")) == "is never reached from here"

    def test_a_network_that_is_none_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"'10\.1\.2\.3/8' is no network"):
            networks("127.0.0.1, 10.1.2.3/8")
        assert networks("") == ()
