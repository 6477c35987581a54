"""The wire contract of the Worker Service, field for field, as unmodified clients of both generations call it."""

import base64
import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.worker_service import Service, package, service, verify_package

FIELDS = {"task_id": "job-1", "op_name": "relu"}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("worker") / "state", devices="0,3") as running:
        yield running


def test_status_has_these_fields_and_no_other(worker: Service) -> None:
    body = worker.get("/api/v1/status").json()
    assert body == {"status": "ready", "backend": "cpu", "arch": "x86_64", "devices": [0, 3]}


def test_devices_are_lent_in_order_and_come_back(worker: Service) -> None:
    assert [worker.acquire("job-1"), worker.acquire("job-1")] == [0, 3]
    worker.release("job-1", 0)
    assert worker.acquire("job-2") == 0
    for task, device in (("job-2", 0), ("job-1", 3)):
        worker.release(task, device)
    assert worker.free() == 2


@pytest.mark.parametrize("encoding", ["urlencoded", "multipart"])
def test_both_encodings_are_taken_on_both_calls(worker: Service, encoding: str) -> None:
    def post(path: str, data: dict[str, str]) -> Any:
        if encoding == "urlencoded":
            return worker.post(path, data).json()
        return worker.post(path, files={name: (None, value) for name, value in data.items()}).json()

    device = post("/api/v1/acquire_device", {"task_id": "ü & =%20"})["device_id"]
    assert worker.leases()[0]["task_id"] == "ü & =%20"
    assert post("/api/v1/release_device", {"task_id": "ü & =%20", "device_id": str(device)}) == {"status": "ok"}
    assert worker.leases() == []


@pytest.mark.parametrize(
    ("path", "data", "missing"),
    [
        ("/api/v1/acquire_device", {}, ["task_id"]),
        ("/api/v1/release_device", {"task_id": "t", "device_id": "first"}, ["device_id"]),
        ("/api/v1/release_device", {"device_id": "0"}, ["task_id"]),
        ("/api/v1/verify", {"task_id": "t"}, ["package", "op_name"]),
    ],
)
def test_a_missing_or_ill_typed_field_is_422_with_its_place(
    worker: Service, path: str, data: dict[str, str], missing: list[str]
) -> None:
    answer = worker.post(path, data)
    assert answer.status_code == 422
    problems = answer.json()["detail"]
    assert [problem["loc"] for problem in problems] == [["body", name] for name in missing]
    assert all({"type", "loc", "msg", "input"} <= problem.keys() for problem in problems)


def test_a_verification_that_succeeds(worker: Service) -> None:
    script = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
    assert worker.send("verify", verify_package(script), FIELDS).json() == {
        "success": True, "log": "out\n\nerr\n", "artifacts": {}, "outcome": "ok",
    }  # fmt: skip


def test_a_verification_that_fails_is_no_http_error_and_keeps_its_artifacts(worker: Service) -> None:
    script = (
        "import os\nos.makedirs('deep/er')\nopen('a.json', 'w').write('{\"x\": 1}')\n"
        "open('deep/er/b.jsonl', 'w').write('no json')\nopen('c.txt', 'w').write('c')\n"
        "open('bad.json', 'wb').write(b'\\xff')\nraise SystemExit(3)\n"
    )
    body = worker.verify(script)
    assert (body["success"], body["outcome"]) == (False, "candidate_failed")
    assert body["artifacts"] == {"a.json": '{"x": 1}', "deep/er/b.jsonl": "no json"}


def test_a_time_that_is_up_is_said_in_the_contract_s_words(worker: Service) -> None:
    body = worker.verify("import time\nprint('begun', flush=True)\ntime.sleep(60)", timeout=1)
    assert body == {
        "success": False, "log": "Verification timed out after 1 seconds.", "artifacts": {}, "outcome": "timeout",
    }  # fmt: skip


def test_a_missing_script_and_a_broken_archive_are_answers(worker: Service) -> None:
    body = worker.send("verify", package({"other.py": ""}), FIELDS).json()
    assert (body["success"], body["log"]) == (False, "Verification script verify_relu.py not found.")
    body = worker.send("verify", b"this is no tar", FIELDS).json()
    assert body["success"] is False
    assert body["log"].startswith("Failed to extract package: ")


@pytest.mark.parametrize("compressed", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_archives_are_taken_plain_and_compressed(worker: Service, compressed: Callable[[bytes], bytes]) -> None:
    assert worker.send("verify", compressed(verify_package("pass")), FIELDS).json()["success"] is True


def test_folders_and_long_names_in_an_archive_of_tarfile_s_own_making(worker: Service, tmp_path: Path) -> None:
    deep = tmp_path / "project" / ("long-name-" * 9) / ("further-" * 9)
    deep.mkdir(parents=True)
    (deep / "data.json").write_text("{}")
    (tmp_path / "project" / "verify_relu.py").write_text("import pathlib\nprint(len(list(pathlib.Path().rglob('*'))))")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(tmp_path / "project", arcname=".")
    body = worker.send("verify", buffer.getvalue(), FIELDS).json()
    assert body["log"].startswith("4\n")


def test_the_script_runs_as_the_contract_says(worker: Service) -> None:
    script = (
        "import json, os, sys\n"
        "json.dump({'argv': sys.argv, 'files': os.listdir(), 'unbuffered': os.environ['PYTHONUNBUFFERED'],"
        "'visible': [name for name in os.environ if 'VISIBLE_DEVICES' in name]}, open('seen.json', 'w'))"
    )
    seen = json.loads(worker.verify(script)["artifacts"]["seen.json"])
    assert seen == {"argv": ["verify_relu.py"], "files": ["verify_relu.py"], "unbuffered": "1", "visible": []}


@pytest.mark.parametrize(
    ("files", "settings", "expected"),
    [
        ({"base": '{"avg_time_us": 30}', "generation": '{"execution_time_us": 12.0}'}, "{}", (12.0, 30.0, 2.5)),
        ({"base": '{"avg_time_us": Infinity}', "generation": '{"avg_time_us": 12.0}'}, "{}", (12.0, None, 0.0)),
        ({"generation": '{"avg_time_us": 12.0}'}, '{"override_base_time_us": 6}', (12.0, 6.0, 0.5)),
        ({"generation": '{"avg_time_us": 8.0}'}, '{"dsl": "triton_ascend", "backend": "ascend"}', (8.0, None, 0.0)),
    ],
)
def test_a_profile(worker: Service, files: dict[str, str], settings: str, expected: tuple[Any, ...]) -> None:
    scripts = {
        f"profile_relu_{name}.py": f"open('{name}_profile_result.json', 'w').write('{text}')"
        for name, text in files.items()
    }
    body = worker.send("profile", package(scripts), FIELDS | {"profile_settings": settings}).json()
    assert (body["gen_time"], body["base_time"], body["speedup"]) == expected
    assert body["roofline"]["success"] is False
    assert body["artifacts"]["generation_profile_result.json"] == files["generation"]
    assert body.keys() == {
        "gen_time", "base_time", "speedup", "roofline_time", "roofline_speedup", "roofline", "artifacts", "outcome",
    }  # fmt: skip


def test_a_profile_whose_candidate_fails_says_why(worker: Service) -> None:
    scripts = {"profile_relu_generation.py": "raise SystemExit('no such kernel')"}
    body = worker.send("profile", package(scripts), FIELDS).json()
    assert (body["gen_time"], body["speedup"], body["outcome"]) == (None, 0.0, "candidate_failed")
    assert "no such kernel" in body["error"]


@pytest.mark.parametrize("operation", ["profile", "profile_single_task"])
@pytest.mark.parametrize("settings", ["{", "[]", "nonsense"])
def test_settings_that_are_no_json_object_are_400(worker: Service, operation: str, settings: str) -> None:
    answer = worker.send(operation, package({"a": ""}), FIELDS | {"profile_settings": settings})
    assert (answer.status_code, answer.json()) == (400, {"detail": "Invalid JSON for profile_settings"})


@pytest.mark.parametrize(
    "script",
    ["open('profile_single_result.json', 'w').write('{\"avg_time_us\": 4.5}')", "print('PROFILE_RESULT: 4.5')"],
)
def test_a_single_task_s_time_is_read_from_its_file_or_its_output(worker: Service, script: str) -> None:
    body = worker.send("profile_single_task", package({"profile_single_relu.py": script}), FIELDS).json()
    assert body.keys() == {"time_us", "success", "log", "outcome"}
    assert (body["time_us"], body["success"]) == (4.5, True)


def test_a_reference_needs_its_marker_and_its_file(worker: Service) -> None:
    write = "open('relu_reference.pt', 'wb').write(bytes(range(256)))\n"
    say = "print('REFERENCE_GENERATION_SUCCESS')\n"
    body = worker.send("generate_reference", verify_package(write + say), FIELDS).json()
    assert body.keys() == {"success", "log", "reference_data", "outcome"}
    assert base64.b64decode(body["reference_data"]) == bytes(range(256))
    for script in (write, say):
        body = worker.send("generate_reference", verify_package(script), FIELDS).json()
        assert (body["success"], body["reference_data"]) == (False, "")


def test_the_one_page_there_is(worker: Service) -> None:
    body = worker.get("/api/v1/docs/triton_ascend_api").json()
    assert body["doc_name"] == "triton_ascend_api"
    assert "tl.load" in body["content"]
    answer = worker.get("/api/v1/docs/other")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Unsupported doc name: other"})


def test_an_operator_s_name_is_no_path(worker: Service) -> None:
    for name in ("../../../tmp/x", "a/b", ".", "", "x" * 500):
        body = worker.send("verify", package({"a": ""}), {"task_id": "t", "op_name": name}).json()
        assert body.get("success", False) is False


def test_the_openapi_document_describes_every_endpoint(worker: Service) -> None:
    paths = worker.get("/openapi.json").json()["paths"]
    wire = ("status", "acquire_device", "release_device", "verify", "profile", "profile_single_task")
    assert {f"/api/v1/{name}" for name in (*wire, "generate_reference", "docs/{doc_name}")} <= paths.keys()
    assert {
        "/api/v1/leases",
        "/api/v1/events",
        "/api/v1/cancel",
        "/api/v1/drain",
        "/metrics",
        "/health",
    } <= paths.keys()


def test_figures_count_what_was_done(worker: Service) -> None:
    before = worker.gauge("akf_worker_operations_total", '{operation="verify",outcome="timeout"}')
    worker.verify("while True: pass", timeout=1)
    assert worker.gauge("akf_worker_operations_total", '{operation="verify",outcome="timeout"}') == before + 1
