"""A model behind an endpoint: what is asked, paid, kept and replayed, and that nothing it sends does harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support.endpoint import endpoint, send

from akf.agents.limits import Limits, Meter
from akf.agents.model import MAX_QUESTION, Model, Settings, Transcripts
from akf.contracts.problems import AkfError, BlockedError, InvalidError, PreconditionError, UsageError

pytest.importorskip("openai")

QUESTION = [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Write."}]
LIMITS = Limits(tokens=2000, board_s=10.0, attempts=3)


def settings(url: str, **changes: object) -> Settings:
    return Settings("stand-in", url, answer_tokens=500, timeout_s=20.0)._replace(**changes)  # type: ignore[arg-type]


def test_a_question_is_asked_as_configured_and_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKF_MODEL_KEY", "sk-secret-123")
    meter = Meter(LIMITS)
    with endpoint(["An answer."], tokens=321) as stand_in:
        model = Model(settings(stand_in.url, temperature=0.7), meter, Transcripts(tmp_path / "kept"))
        assert model.ask(QUESTION) == "An answer."
        model.close()
    (question,) = stand_in.questions
    assert (question["model"], question["temperature"], question["max_tokens"]) == ("stand-in", 0.7, 500)
    assert question["messages"] == QUESTION
    assert stand_in.keys == ["Bearer sk-secret-123"]
    assert meter.spent()["tokens"] == 321
    (kept,) = (tmp_path / "kept").iterdir()
    assert "sk-secret" not in kept.read_text()
    assert json.loads(kept.read_text())["answer"]["text"] == "An answer."


def test_a_recording_is_replayed_without_an_endpoint(tmp_path: Path) -> None:
    with endpoint(["one", "two"]) as stand_in:
        recorded = Model(settings(stand_in.url), Meter(LIMITS), Transcripts(tmp_path))
        said = [recorded.ask(QUESTION), recorded.ask(QUESTION)]
        recorded.close()
    with endpoint(["three"]) as stand_in:
        another = Model(settings(stand_in.url), Meter(LIMITS), Transcripts(tmp_path))
        assert another.ask(QUESTION) == "three", "a recording is no cache"
        another.close()
    for path in sorted(tmp_path.glob("*.3.json")):
        path.unlink()
    meter = Meter(LIMITS)
    replayed = Model(settings(stand_in.url), meter, Transcripts(tmp_path, replay=True))
    assert [replayed.ask(QUESTION), replayed.ask(QUESTION)] == said == ["one", "two"]
    assert meter.spent()["tokens"] == 200
    with pytest.raises(PreconditionError, match="AKF-P723"):
        replayed.ask(QUESTION)
    with pytest.raises(PreconditionError, match="AKF-P723"):
        replayed.ask([*QUESTION, {"role": "user", "content": "More."}])


def test_tokens_are_set_aside_before_anything_is_sent() -> None:
    with endpoint(["x"]) as stand_in:
        model = Model(settings(stand_in.url), Meter(LIMITS._replace(tokens=400)))
        with pytest.raises(PreconditionError, match="AKF-P720"):
            model.ask(QUESTION)
    assert stand_in.questions == []


def test_an_endpoint_that_says_it_cost_nothing_is_paid_by_length() -> None:
    meter = Meter(LIMITS)
    with endpoint(["word " * 800], tokens=0) as stand_in:
        model = Model(settings(stand_in.url), meter)
        model.ask(QUESTION)
        model.close()
    assert meter.spent()["tokens"] >= 500


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(2**30))
    handler.end_headers()
    try:
        for _ in range(1024):
            handler.wfile.write(b" " * 2**20)
    except OSError:
        handler.close_connection = True


def packed(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b")


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (flood, InvalidError, "AKF-S721"),
        (packed, InvalidError, "AKF-S721"),
        (lambda handler: send(handler, {"choices": []}), InvalidError, "AKF-S722"),
        (lambda handler: send(handler, [1, 2]), InvalidError, "AKF-S722"),
        (lambda handler: send(handler, {"choices": [{"message": {"content": None}}]}), InvalidError, "AKF-S722"),
        (lambda handler: send(handler, b"\xff\xfe not json"), InvalidError, "AKF-S722"),
        (lambda handler: send(handler, {"error": {"message": "no \x1b[2J"}}, 401), BlockedError, "AKF-E720"),
        (lambda handler: send(handler, {}, 500), BlockedError, "AKF-E720"),
    ],
)
def test_a_reply_that_is_none_is_refused_and_harms_nothing(
    answer: Callable[[BaseHTTPRequestHandler], None], error: type[AkfError], code: str
) -> None:
    with endpoint([answer, "good"]) as stand_in:
        model = Model(settings(stand_in.url), Meter(LIMITS))
        with pytest.raises(error) as caught:
            model.ask(QUESTION)
        assert [problem.code for problem in caught.value.problems] == [code]
        assert "\x1b" not in str(caught.value)
        assert model.ask(QUESTION) == "good"
        model.close()


def test_where_nothing_listens_is_the_environment_s_fault() -> None:
    with pytest.raises(BlockedError, match="AKF-E720"):
        Model(settings("http://127.0.0.1:9/v1"), Meter(LIMITS)).ask(QUESTION)


def test_a_question_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(InvalidError, match="AKF-S721"):
        Model(settings("http://127.0.0.1:9"), Meter(LIMITS)).ask(
            [{"role": "user", "content": "x" * (MAX_QUESTION + 1)}]
        )


def test_settings_come_from_a_configuration_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.read() is None
    monkeypatch.setenv("AKF_MODEL", "a")
    assert Settings.read() is None
    monkeypatch.setenv("AKF_MODEL_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("AKF_MODEL_TEMPERATURE", "0.5")
    assert Settings.read({"model": "b"}) == Settings("b", "http://127.0.0.1:1/v1", 0.5)
    with pytest.raises(UsageError, match="AKF-U720"):
        Settings.read({"temperature": "warm"})
