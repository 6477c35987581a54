"""A model behind an OpenAI-compatible endpoint, and a conversation that was recorded in its place.

Invariants:
- Model, base URL, temperature and the length of an answer are configuration; the key comes from the environment alone
  and stands in no file and no message.
- Tokens are set aside before a question is sent and paid by what the answer says, at least by its length.
- A reply is read up to `MAX_REPLY` bytes; a longer one, or one of another form, is a refused answer and nothing more.
- Every question and answer is kept by the question's digest. With `replay` the same questions get the same answers, no
  endpoint is asked, and a question that was never asked is refused.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.agents.limits import Meter
from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import BlockedError, InvalidError, PreconditionError, UsageError
from akf.contracts.text import printable
from akf.store.publish import make_folder, publish_file

MAX_REPLY = 8 * 1024 * 1024
MAX_QUESTION = 512 * 1024
BYTES_PER_TOKEN = 3
LEAST_BYTES_PER_TOKEN = 8
VARIABLES = {
    "model": "AKF_MODEL", "base_url": "AKF_MODEL_URL", "temperature": "AKF_MODEL_TEMPERATURE",
    "answer_tokens": "AKF_MODEL_ANSWER_TOKENS", "timeout_s": "AKF_MODEL_TIMEOUT_S", "transcripts": "AKF_TRANSCRIPTS",
}  # fmt: skip
KEY = "AKF_MODEL_KEY"

Message = Mapping[str, str]


class Settings(NamedTuple):
    """How a model is asked."""

    model: str
    base_url: str
    temperature: float = 0.2
    answer_tokens: int = 8192
    timeout_s: float = 300.0
    transcripts: str | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any] | None = None) -> Settings | None:
        """Settings of a configuration, else of the environment; None where neither names a model.

        Raises:
            UsageError: a value has another form.
        """
        given: dict[str, Any] = {
            name: os.environ[variable] for name, variable in VARIABLES.items() if variable in os.environ
        }
        given |= {name: value for name, value in (config or {}).items() if name in VARIABLES and value is not None}
        if not given.get("model") or not given.get("base_url"):
            return None
        given = {**cls._field_defaults, **given}
        texts = {name: str(given[name]) for name in ("model", "base_url")}
        folder = given["transcripts"]
        try:
            return cls(
                **texts, temperature=float(given["temperature"]), answer_tokens=int(given["answer_tokens"]),
                timeout_s=float(given["timeout_s"]), transcripts=None if folder is None else str(folder),
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            message = f"the model's settings: {printable(str(error))[:200]}"
            raise UsageError.of("AKF-U720", message, hint=f"see {', '.join(VARIABLES.values())}") from error


class Transcripts:
    """Questions and answers in a folder, by digest.

    Args:
        folder: where they are.
        replay: answer from there only.
    """

    def __init__(self, folder: Path, *, replay: bool = False) -> None:
        self.folder = folder
        self.replay = replay
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()

    def place(self, question: Mapping[str, Any]) -> Path:
        """The file of a question; the same question asked again has another one, and nothing kept is replaced."""
        name = digest(canonical_bytes(question))[7:]
        with self._lock:
            number = self._asked.get(name, 0) + 1
            while not self.replay and (self.folder / f"{name}.{number}.json").exists():
                number += 1
            self._asked[name] = number
        return self.folder / f"{name}.{number}.json"

    def read(self, place: Path) -> dict[str, Any] | None:
        """What was answered, or None."""
        try:
            value = orjson.loads(place.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, orjson.JSONDecodeError) as error:
            raise InvalidError.of("AKF-S722", f"{place.name} is no transcript", file=place.name) from error
        answer = value.get("answer") if isinstance(value, dict) else None
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            raise InvalidError.of("AKF-S722", f"{place.name} is no transcript", file=place.name)
        return answer

    def keep(self, place: Path, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Write one exchange."""
        make_folder(self.folder)
        publish_file(place, canonical_bytes({"question": dict(question), "answer": dict(answer)}))


class Model:
    """Asks, pays and keeps.

    Args:
        settings: how.
        meter: pays.
        transcripts: where exchanges are kept, or come from.
    """

    def __init__(self, settings: Settings, meter: Meter, transcripts: Transcripts | None = None) -> None:
        self._settings = settings
        self._meter = meter
        self._transcripts = transcripts
        self._client: Any = None
        self._lock = threading.Lock()

    def ask(self, messages: Sequence[Message]) -> str:
        """The answer's text.

        Raises:
            PreconditionError: the Task's tokens do not suffice, or a question is not in the recording.
            InvalidError: the question or the reply is too large, or the reply has another form.
            BlockedError: the endpoint cannot be reached, or refuses.
        """
        settings = self._settings
        question = {
            "model": settings.model, "temperature": settings.temperature, "max_tokens": settings.answer_tokens,
            "messages": [dict(message) for message in messages],
        }  # fmt: skip
        size = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        if size > MAX_QUESTION:
            message = f"the question has {size:,} bytes, at most {MAX_QUESTION:,} are sent"
            raise InvalidError.of("AKF-S721", message, expected=MAX_QUESTION, found=size)
        place = None if self._transcripts is None else self._transcripts.place(question)
        with self._meter.reserve("tokens", size // BYTES_PER_TOKEN + settings.answer_tokens) as paid:
            replayed = self._transcripts is not None and self._transcripts.replay
            answer = self._transcripts.read(place) if replayed and self._transcripts and place else None
            if answer is None and replayed and place is not None:
                message = f"the recording holds no answer to the question {place.stem[:12]}"
                raise PreconditionError.of("AKF-P723", message, hint="record it again, or ask without replay")
            fresh = answer is None
            answer = self._sent(question) if answer is None else answer
            least = (size + len(answer["text"].encode("utf-8", "replace"))) // LEAST_BYTES_PER_TOKEN
            paid(max(least, int(answer.get("tokens") or 0)))
        if fresh and self._transcripts is not None and place is not None:
            self._transcripts.keep(place, question, answer)
        return str(answer["text"])

    def _sent(self, question: dict[str, Any]) -> dict[str, Any]:
        import openai  # noqa: PLC0415

        try:
            reply = self._connected().chat.completions.create(**question, n=1)
            text = reply.choices[0].message.content
            usage = getattr(reply, "usage", None)
            tokens = getattr(usage, "total_tokens", None)
        except _TooLong as error:
            raise InvalidError.of("AKF-S721", str(error), expected=MAX_REPLY) from None
        except openai.APIError as error:
            if isinstance(error.__cause__, _TooLong):
                raise InvalidError.of("AKF-S721", str(error.__cause__), expected=MAX_REPLY) from None
            if isinstance(error, openai.APIResponseValidationError):
                raise InvalidError.of("AKF-S722", "the endpoint's reply is no completion") from None
            message = f"the model's endpoint does not answer: {type(error).__name__}: {printable(str(error))[:200]}"
            raise BlockedError.of("AKF-E720", message, hint="is AKF_MODEL_URL right, and AKF_MODEL_KEY set?") from None
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise InvalidError.of("AKF-S722", "the endpoint's reply is no completion") from error
        if not isinstance(text, str) or not text:
            raise InvalidError.of("AKF-S722", "the endpoint's reply has no text")
        whole = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 2**40
        return {"text": text, "tokens": tokens if whole else 0}

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _client(self._settings)
            return self._client

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.close()


class _TooLong(Exception):  # noqa: N818 - an answer about the reply
    """The reply is longer than anybody reads."""


def _client(settings: Settings) -> Any:
    try:
        import openai  # noqa: PLC0415
    except ImportError as error:
        message = "the client of OpenAI-compatible endpoints is not installed"
        raise BlockedError.of("AKF-E720", message, hint='pip install "ascend-kernel-forge[agents]"') from error
    below = next(each for each in openai.DefaultHttpxClient.__mro__ if each.__name__ == "Client")
    httpx: Any = importlib.import_module(below.__module__.partition(".")[0])  # the one that this openai is built on

    class Bounded(httpx.SyncByteStream):  # type: ignore[misc]
        """A reply's bytes, up to `MAX_REPLY`."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            total = 0
            for part in self._stream:
                total += len(part)
                if total > MAX_REPLY:
                    raise _TooLong(f"the endpoint's reply has more than {MAX_REPLY:,} bytes")
                yield part

        def close(self) -> None:
            self._stream.close()

    class Transport(httpx.HTTPTransport):  # type: ignore[misc]
        """Replies as they come, uncompressed and bounded."""

        def handle_request(self, request: Any) -> Any:
            request.headers["Accept-Encoding"] = "identity"
            found = super().handle_request(request)
            if found.headers.get("content-encoding", "identity") != "identity":
                found.close()
                raise _TooLong("the endpoint packs its reply, so its length cannot be bounded")
            return httpx.Response(found.status_code, headers=found.headers, stream=Bounded(found.stream))

    http = httpx.Client(transport=Transport(), timeout=settings.timeout_s, trust_env=False, follow_redirects=False)
    key = os.environ.get(KEY, "none")
    return openai.OpenAI(
        api_key=key, base_url=settings.base_url, http_client=http, max_retries=0, timeout=settings.timeout_s
    )
