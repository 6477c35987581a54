"""What goes wrong around a Worker Service, each with real processes, and `kill -9` where that is the fault."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.support.worker_service import (
    Service,
    events_of,
    eventually,
    package,
    processes_with,
    service,
    verify_package,
)


def sleeper(marker: str) -> str:
    """A script with a child and a grandchild that left its session, all of which carry a marker."""
    return (
        "import subprocess, sys, time\n"
        f"code = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300) # {marker}'\n"
        "subprocess.Popen([sys.executable, '-c', code])\n"
        "subprocess.Popen(['setsid', sys.executable, '-c', code])\n"
    )


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("faults") / "state", "--idle", "3", devices="0,1") as running:
        yield running


@pytest.fixture(autouse=True)
def everything_came_back(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "worker" in request.fixturenames:
        running: Service = request.getfixturevalue("worker")
        eventually(lambda: running.free() == 2, "every device came back")


def half_asked(url: str, body: str, path: str = "/api/v1/acquire_device") -> socket.socket:
    """A request whose answer nobody waits for yet."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


class TestHolders:
    def test_g1_a_killed_holder_s_lease_is_reclaimed_when_nobody_renews_it(self, worker: Service) -> None:
        code = (
            "import httpx, sys, time\n"
            f"answer = httpx.post('{worker.url}/api/v1/leases', data={{'task_id': 'dead', 'ttl_s': '1'}})\n"
            "print(answer.text, flush=True)\n"
            "time.sleep(300)"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert '"task_id":"dead"' in holder.stdout.readline()
            holder.kill()
        assert [lease["task_id"] for lease in worker.leases()] == ["dead"]
        eventually(lambda: worker.leases() == [], "the lease is reclaimed", 5)

    def test_g1_a_lease_of_the_old_wire_is_reclaimed_when_it_lies_idle(self, worker: Service) -> None:
        before = worker.gauge("akf_worker_leases_total", '{event="reclaimed"}')
        worker.acquire("gone")
        eventually(lambda: worker.leases() == [], "the lease is reclaimed", 8)
        assert worker.gauge("akf_worker_leases_total", '{event="reclaimed"}') == before + 1

    def test_g1_a_lease_that_is_used_or_renewed_holds(self, worker: Service) -> None:
        lease = worker.post("/api/v1/leases", {"task_id": "mine", "ttl_s": "1"}).json()
        device = worker.acquire("old")
        for _ in range(4):
            time.sleep(0.5)
            renewed = worker.post(f"/api/v1/leases/{lease['lease_id']}/renew", {"token": lease["token"]})
            assert renewed.status_code == 200
        worker.verify("import time; time.sleep(3)", "old")
        assert "old" in {held["task_id"] for held in worker.leases()}
        worker.release("old", device)

    def test_g2_waiters_that_went_away_swallow_no_device(self, worker: Service) -> None:
        held = [worker.acquire("holder") for _ in range(2)]
        waiters = [half_asked(worker.url, f"task_id=dead{number}") for number in range(3)]
        eventually(lambda: worker.gauge("akf_worker_waiting") == 3, "three wait")
        for waiter in waiters:
            waiter.close()
        eventually(lambda: worker.gauge("akf_worker_waiting") == 0, "nobody waits")
        for device in held:
            worker.release("holder", device)
        assert worker.free() == 2

    def test_g2_a_grant_to_a_waiter_that_is_just_leaving_is_handed_over_or_returned(self, worker: Service) -> None:
        lease = worker.post("/api/v1/leases", {"task_id": "other", "ttl_s": "600"}).json()
        for number in range(10):
            device = worker.acquire("holder")
            waiter = half_asked(worker.url, f"task_id=leaving{number}")
            eventually(lambda: worker.gauge("akf_worker_waiting") == 1, "it waits")
            both: list[Callable[[], None]] = [waiter.close, partial(worker.release, "holder", device)]
            with ThreadPoolExecutor(2) as pool:
                for each in both if number % 2 else both[::-1]:
                    pool.submit(each)
            eventually(lambda: worker.free() == 1, "it came back", 2)
        worker.post(f"/api/v1/leases/{lease['lease_id']}/release", {"token": lease["token"]})

    def test_g3_only_the_holder_releases_and_only_once(self, worker: Service) -> None:
        device = worker.acquire("mine")
        for task, number in (("other", device), ("mine", 999), ("mine", 1 - device), ("mine", -1), ("mine", 10**30)):
            assert worker.post("/api/v1/release_device", {"task_id": task, "device_id": str(number)}).json() == {
                "status": "ok"
            }
        assert [lease["device_id"] for lease in worker.leases()] == [device]
        for _ in range(3):
            worker.release("mine", device)
        assert sorted(worker.acquire("two") for _ in range(2)) == [0, 1]
        for number in (0, 1):
            worker.release("two", number)

    def test_a_stale_token_is_refused_at_the_moment_of_execution(self, worker: Service) -> None:
        lease = worker.post("/api/v1/leases", {"task_id": "mine"}).json()
        shown = {"task_id": "mine", "op_name": "relu", "lease_id": lease["lease_id"], "token": lease["token"]}
        assert worker.send("verify", verify_package("pass"), shown).json()["success"] is True
        stale = shown | {"token": lease["token"] - 1}
        assert worker.send("verify", verify_package("pass"), stale).status_code == 409
        released = worker.post(f"/api/v1/leases/{lease['lease_id']}/release", {"token": lease["token"]})
        assert released.json() == {"released": True}
        assert worker.send("verify", verify_package("pass"), shown).status_code == 409


class TestTrees:
    def test_g7_cancel_ends_the_whole_tree_before_its_device_comes_back(self, worker: Service) -> None:
        device = worker.acquire("doomed")
        with ThreadPoolExecutor(1) as pool:
            going = pool.submit(worker.verify, sleeper("g7") + "time.sleep(300)", "doomed", 60)
            eventually(lambda: len(processes_with("# g7")) == 2, "the tree runs")
            worker.release("doomed", device)
            assert worker.gauge("akf_worker_devices", '{state="returning"}') == 1
            assert worker.post("/api/v1/cancel", {"task_id": "doomed"}).json() == {"cancelled": True}
            assert processes_with("# g7") == []
            body = going.result(10)
        assert (body["success"], body["outcome"]) == (False, "cancelled")
        assert worker.post("/api/v1/cancel", {"task_id": "doomed"}).json() == {"cancelled": False}

    @pytest.mark.parametrize("end", ["time.sleep(300)", "pass"])
    def test_g8_g9_nothing_of_a_tree_survives_its_answer(self, worker: Service, end: str) -> None:
        body = worker.verify(sleeper("g8") + end, "tree", timeout=2)
        assert body["outcome"] == ("ok" if end == "pass" else "timeout")
        assert processes_with("# g8") == []

    def test_g10_a_child_that_holds_the_output_delays_nothing(self, worker: Service) -> None:
        began = time.monotonic()
        body = worker.verify("import subprocess\nsubprocess.Popen(['sleep', '300'])\nprint('done')", "task", 20)
        assert (body["success"], body["log"]) == (True, "done\n\n")
        assert time.monotonic() - began < 10

    def test_g11_whoever_leaves_in_the_middle_ends_what_runs(self, worker: Service) -> None:
        with pytest.raises(httpx.ReadTimeout):
            worker.verify(sleeper("g11") + "time.sleep(300)", "left", 60, patience=1.5)
        eventually(lambda: processes_with("# g11") == [], "the tree ended", 10)

    def test_g12_a_profile_s_time_is_that_of_all_its_scripts(self, worker: Service) -> None:
        slow = "import time; time.sleep(300)"
        data = package({"profile_relu_base.py": slow, "profile_relu_generation.py": slow})
        began = time.monotonic()
        fields = {"task_id": "t", "op_name": "relu", "profile_settings": '{"timeout": 1}'}
        body = worker.send("profile", data, fields).json()
        assert time.monotonic() - began < 10
        assert (body["gen_time"], body["outcome"]) == (None, "timeout")
        assert body["error"] == "Profiling timed out after 1 seconds."

    def test_g17_a_long_log_keeps_its_ends_and_its_markers(self, worker: Service) -> None:
        script = (
            "import sys\nprint('first')\nsys.stdout.write('x' * (8 << 20))\nprint('\\nREFERENCE_CHECK_SUCCESS')\n"
            "sys.stdout.write('y' * (8 << 20))\nprint('last')\n"
        )
        log = worker.verify(script)["log"]
        assert len(log) < 1 << 20
        assert log.startswith("first\n")
        assert log.rstrip().endswith("last")
        assert "\nREFERENCE_CHECK_SUCCESS\n" in log
        assert "bytes are left out here" in log

    def test_g22_what_runs_without_a_lease_has_one_for_its_time(self, worker: Service) -> None:
        with ThreadPoolExecutor(4) as pool:
            script = (
                "import json, time\n"
                "json.dump({'from': time.time(), 'to': (time.sleep(0.2), time.time())[1]}, open('when.json', 'w'))"
            )
            going = [pool.submit(worker.verify, script, f"task{number}_check") for number in range(4)]
            eventually(lambda: worker.free() < 2, "a device is lent")
            answers = [json.loads(each.result(30)["artifacts"]["when.json"]) for each in going]
        spans = sorted((each["from"], each["to"]) for each in answers)
        most = max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)
        assert most <= 2

    def test_packages_cannot_write_elsewhere_nor_see_secrets(self, worker: Service, tmp_path: Path) -> None:
        script = (
            "import json, os, pathlib\n"
            "def attempt(path):\n"
            "    try:\n        pathlib.Path(path).write_text('x')\n        return 'written'\n"
            "    except OSError as error:\n        return type(error).__name__\n"
            f"found = {{'there': attempt({str(tmp_path / 'evil')!r}), 'etc': attempt('/etc/evil')}}\n"
            "found['home'] = attempt(pathlib.Path.home() / 'mine')\n"
            "found['secrets'] = [name for name in os.environ if 'TOKEN' in name or name.startswith('AKF_')]\n"
            "found['processes'] = len([each for each in os.listdir('/proc') if each.isdigit()])\n"
            "json.dump(found, open('found.json', 'w'))\n"
        )
        body = worker.verify(script)
        if worker.get("/health").json()["isolation"] != "namespaces":
            pytest.skip("this kernel gives no namespaces")
        found = json.loads(body["artifacts"]["found.json"])
        assert found.pop("there") != "written" or not (tmp_path / "evil").exists()
        assert found == {"etc": "OSError", "home": "written", "secrets": [], "processes": 2}


class TestPackages:
    def test_g14_artifacts_are_read_without_following_links(self, worker: Service) -> None:
        script = (
            "import os\nos.symlink('/etc/passwd', 'leak.json')\nos.symlink('/etc', 'etc')\nos.mkfifo('pipe.json')\n"
            "open('own.json', 'w').write('{}')\nos.link('own.json', 'twin.json')\nopen('good.json', 'w').write('1')\n"
        )
        assert worker.verify(script)["artifacts"] == {"good.json": "1"}

    def test_a_deep_and_closed_tree_is_removed(self, worker: Service) -> None:
        script = (
            "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\n"
            "os.chmod('/tmp/work', 0)\nprint('done')"
        )
        body = worker.verify(script)
        assert body["success"] is True

    @pytest.mark.soak
    def test_g16_more_than_a_package_may_be_is_refused_before_it_is_taken(self, tmp_path: Path) -> None:
        with service(tmp_path / "small", "--package-mib", "1") as small:
            big = bytes(2 << 20)
            fields = {"task_id": "t", "op_name": "relu"}
            assert small.send("verify", big, fields).status_code == 413

            def chunks() -> Iterator[bytes]:
                yield b'--x\r\nContent-Disposition: form-data; name="package"; filename="p"\r\n\r\n'
                for _ in range(64):
                    yield bytes(1 << 16)

            kind = {"content-type": "multipart/form-data; boundary=x"}
            answer = small.post("/api/v1/verify", content=chunks(), headers=kind)
            assert answer.status_code == 413
            assert small.verify("pass")["success"] is True


class TestEnds:
    def test_g5_a_killed_worker_leaves_no_process_and_the_next_one_knows_what_was_lent(self, tmp_path: Path) -> None:
        folder = tmp_path / "state"
        with service(folder, devices="0,1") as first:
            device = first.acquire("keeper")
            lease = first.post("/api/v1/leases", {"task_id": "mine", "ttl_s": "100"}).json()
            threading.Thread(target=swallowed, args=(first, sleeper("g5") + "time.sleep(300)"), daemon=True).start()
            eventually(lambda: len(processes_with("# g5")) == 2, "the tree runs")
            assert len(list((folder / "packages" / "uploads").iterdir())) == 1
            first.kill()
            eventually(lambda: processes_with("# g5") == [], "nothing of the package survives", 10)
        with service(folder, devices="0,1") as second:
            assert list((folder / "packages" / "uploads").iterdir()) == []
            held = {each["task_id"]: each for each in second.leases()}
            assert held["keeper"]["device_id"] == device
            assert held["mine"]["token"] == lease["token"]
            renewed = second.post(f"/api/v1/leases/{lease['lease_id']}/renew", {"token": lease["token"]})
            assert renewed.status_code == 200
            second.release("keeper", device)
            later = second.post("/api/v1/leases", {"task_id": "new"}).json()
            assert later["device_id"] == device
            assert later["token"] > lease["token"]

    @pytest.mark.soak
    def test_g18_told_to_end_it_refuses_who_waits_and_is_gone_in_its_time(self, tmp_path: Path) -> None:
        with service(tmp_path / "state", "--drain", "0.5") as one, ThreadPoolExecutor(3) as pool:
            one.acquire("holder")
            waiting = pool.submit(one.post, "/api/v1/acquire_device", {"task_id": "waits"})
            running = pool.submit(one.verify, sleeper("g18") + "time.sleep(300)", "holder", 60)
            stream = pool.submit(one.get, "/api/v1/events")
            eventually(lambda: len(processes_with("# g18")) == 2, "the tree runs")
            began = time.monotonic()
            one.process.send_signal(signal.SIGTERM)
            assert waiting.result(10).status_code == 503
            assert running.result(10)["outcome"] == "infra_error"
            assert "draining" in {event["kind"] for event in events_of(stream.result(10).text)}
            assert one.process.wait(15) == 0
            assert time.monotonic() - began < 12
        assert processes_with("# g18") == []

    @pytest.mark.soak
    def test_two_workers_of_one_folder_are_refused(self, tmp_path: Path) -> None:
        with service(tmp_path / "state"):
            argv = [sys.executable, "-m", "akf", "worker", "--port", "0", "--folder", str(tmp_path / "state")]
            second = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 5
        assert "AKF-C501" in second.stdout


def swallowed(one: Service, script: str) -> None:
    with suppress(httpx.TransportError):
        one.verify(script, "keeper")
