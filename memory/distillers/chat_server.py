"""Any server that speaks OpenAI's /v1/chat/completions: a hosted model, Ollama, vLLM, llama.cpp, LM Studio."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import openai

from memory.distillers.base import DistillerUnavailable, UnusableAnswer

MAX_ANSWER = 65_536  # bytes of the server's answer; what is asked for is a tenth of that at most

_OBJECT: Final = {"type": "json_object"}

#: Statuses that speak against this request, not against the server.
_ABOUT_REQUEST: Final = frozenset({400, 413, 415, 422})
_REMEDIES: Final = {
    401: "Check SONDER_DISTILLER_KEY.",
    403: "Check SONDER_DISTILLER_KEY and what it may use.",
    404: "Check SONDER_DISTILLER_URL (it ends in /v1) and SONDER_DISTILLER_MODEL.",
    429: "The server limits requests.",
}


class _TooLarge(openai.OpenAIError):
    """The client passes its own errors on as they are, also out of a hook."""


class _TooSlow(openai.OpenAIError):
    """A server may send a byte now and then for as long as it likes; no timeout of a single read ends that."""


class ChatServer:
    """`model` on the server at `base_url` (ending in /v1).

    The answer is constrained by a JSON schema; a server that refuses schemas is asked for any JSON object, and what
    comes back is checked all the same. Each request is made once, at temperature 0: whoever asked decides when to ask
    again. `timeout` (seconds) bounds each read, and the whole body.

    Nothing that the server wrote is repeated in an error, because servers quote keys and prompts.
    """

    def __init__(self, *, base_url: str, model: str, api_key: str | None = None, timeout: float = 20.0) -> None:
        self._model = model
        self._timeout = timeout
        self._server = f"The distiller at {urlsplit(base_url).netloc.rpartition('@')[2]}"  # user and password cut off
        self._takes_schema = True
        # The key must not follow a redirect, and the client insists on some key.
        http = openai.DefaultHttpxClient(follow_redirects=False, event_hooks={"response": [self._read]})
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=api_key or "none",
            timeout=timeout,
            max_retries=0,
            http_client=http,
            default_headers={"Connection": "close"},  # requests are rare: a connection that was kept would be dead
        )

    def field(self, rules: str, record: Mapping[str, object], name: str, *, most_tokens: int) -> str | None:
        """What the model says in the field `name` of a JSON object; None where it says null.

        `rules` is what is asked, `record` the data that it is asked about. Raises DistillerUnavailable or
        UnusableAnswer.
        """
        data = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode()  # no lone surrogates
        messages = [{"role": "system", "content": rules}, {"role": "user", "content": data}]
        return self._field(self._content(self._ask(messages, _schema(name), most_tokens)), name)

    def close(self) -> None:
        """Closes the connections to the server."""
        self._client.close()

    def _read(self, response: Any) -> None:
        """Reads a good answer within its bounds as soon as its head is here, and of an error nothing but the head."""
        if response.status_code != 200:
            response.close()
            return
        end = time.monotonic() + self._timeout
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > MAX_ANSWER:
                raise _TooLarge
            if time.monotonic() > end:
                raise _TooSlow
        response.extensions["body"] = bytes(body)

    def _ask(self, messages: list[dict[str, str]], schema: Any, most_tokens: int) -> bytes:
        """The body of the server's answer."""
        if self._takes_schema:
            try:
                return self._request(messages, schema, most_tokens)
            except openai.APIStatusError as error:
                if error.status_code not in _ABOUT_REQUEST:
                    self._fail(error)
        try:
            body = self._request(messages, _OBJECT, most_tokens)
        except openai.APIStatusError as error:
            self._fail(error)
        self._takes_schema = False  # it takes the same request without
        return body

    def _request(self, messages: list[dict[str, str]], form: Any, most_tokens: int) -> bytes:
        """Raises APIStatusError for an error of the server's, and ours for everything else."""
        create: Callable[..., Any] = self._client.chat.completions.with_streaming_response.create
        try:
            with create(
                model=self._model, messages=messages, response_format=form, temperature=0, max_tokens=most_tokens
            ) as answer:
                return bytes(answer.http_response.extensions["body"])
        except openai.APIStatusError:
            raise
        except _TooLarge:
            raise UnusableAnswer(f"{self._server} answered with more than {MAX_ANSWER} bytes.") from None
        except (openai.APITimeoutError, _TooSlow):
            raise DistillerUnavailable(f"{self._server} did not answer in {self._timeout:g} seconds.") from None
        except openai.OpenAIError as error:
            raise DistillerUnavailable(f"{self._server} gave no answer ({type(error).__name__}).") from None

    def _fail(self, error: openai.APIStatusError) -> NoReturn:
        status = error.status_code
        said = f"{self._server} answered HTTP {status}."
        if status in _ABOUT_REQUEST:
            raise UnusableAnswer(said) from None
        wait = retry_after(error.response.headers.get("Retry-After"))
        raise DistillerUnavailable(f"{said} {_REMEDIES.get(status, 'Look into its log.')}", wait) from None

    def _content(self, body: bytes) -> str:
        """The text of an answer. Whatever else the answer says is not read."""
        try:
            message = json.loads(body)["choices"][0]["message"]
            refused, content = message.get("refusal"), message.get("content")
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            raise UnusableAnswer(f"{self._server} answered with something that is no chat completion.") from None
        if refused:
            raise UnusableAnswer(f"{self._server} refused to answer.")
        if not isinstance(content, str) or not content.strip():
            raise UnusableAnswer(f"{self._server} answered with nothing.")
        return content

    def _field(self, content: str, name: str) -> str | None:
        try:
            value = json.loads(content)[name]
        except (ValueError, RecursionError, LookupError, TypeError):
            value = False
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise UnusableAnswer(f"{self._server} answered with something else than a {name} or null.")
        return value


def _schema(name: str) -> dict[str, Any]:
    """An object with one field, which is a text or null."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": name,
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {name: {"type": ["string", "null"]}},
                "required": [name],
                "additionalProperties": False,
            },
        },
    }


def shortened(text: str, most: int) -> str:
    """Beginning and end, which say more than the middle."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[...]\n{text[-half:]}"


def retry_after(value: str | None) -> float | None:
    """Seconds to wait, from a Retry-After header (RFC 9110, 10.2.3), which is a number or a date. None if neither."""
    if value is None:
        return None
    if value.isdecimal():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())
