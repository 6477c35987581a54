"""The table of `docs/faults.md`: what goes wrong around workers and Servers, and what the tests of it showed here.

`python -m tests.support.fault_table` runs them all and prints it; with `AKF_CLIENTS_S=600` the 64 clients stay for ten
minutes, as on that page.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
HOLDERS, ENDS = (f"tests/fabric/test_worker_faults.py::Test{name}::test_" for name in ("Holders", "Ends"))
SERVER, NET, DISK, CLOCK, CROWD = (
    f"tests/server/test_{name}.py::test_"
    for name in ("server_faults", "network_cut", "full_disk", "clock_jump", "64_clients")
)


class Fault(NamedTuple):
    """A fault, what holds nevertheless, and the tests that show it."""

    what: str
    holds: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "a client dies holding a device",
        "its lease ends by its time to live, or by its idleness",
        (
            f"{HOLDERS}g1_a_killed_holder_s_lease_is_reclaimed_when_nobody_renews_it",
            f"{HOLDERS}g1_a_lease_of_the_old_wire_is_reclaimed_when_it_lies_idle",
        ),
    ),
    Fault(
        "a client dies waiting for one",
        "it swallows no device",
        (
            f"{HOLDERS}g2_waiters_that_went_away_swallow_no_device",
            f"{HOLDERS}g2_a_grant_to_a_waiter_that_is_just_leaving_is_handed_over_or_returned",
        ),
    ),
    Fault(
        "a worker is killed in a verification",
        "no process is left, its leases are known; the job runs elsewhere and blames nobody",
        (
            f"{ENDS}g5_a_killed_worker_leaves_no_process_and_the_next_one_knows_what_was_lent",
            f"{SERVER}a_job_outlives_its_server_and_its_worker",
        ),
    ),
    Fault(
        "the Server is killed, again and again",
        "each job ends exactly once",
        (f"{SERVER}killed_again_and_again_nothing_is_lost_or_run_to_its_end_twice",),
    ),
    Fault(
        "a dead worker is still registered",
        "its jobs run elsewhere",
        (f"{SERVER}what_a_worker_fails_to_do_is_tried_elsewhere_and_is_nobody_s_failure",),
    ),
    Fault(
        "a worker hangs",
        "it is lost, and taken back when it answers",
        (f"{SERVER}a_worker_that_hangs_is_lost_and_taken_back",),
    ),
    Fault(
        "the network is cut in a job",
        "unnoticed for 4 s; after 50 s it runs again, once to its end",
        (f"{NET}a_job_whose_link_is_cut_in_the_middle_ends_and_its_device_comes_back",),
    ),
    Fault(
        "the network is cut while a device is awaited",
        "what was granted into it comes back; what had arrived stays",
        (
            f"{NET}a_device_that_is_granted_into_a_cut_link_comes_back",
            f"{NET}a_device_that_came_before_the_cut_stays_with_its_holder",
        ),
    ),
    Fault(
        "a worker's disk is full",
        "503 with a remedy, nothing partial, all goes on with room",
        (
            f"{DISK}a_worker_whose_disk_is_full_refuses_and_goes_on_when_there_is_room",
            f"{DISK}an_upload_or_a_package_that_does_not_fit_is_the_machine_s_fault",
            f"{DISK}a_full_disk_below_temporary_files_is_no_fault_of_the_request",
        ),
    ),
    Fault(
        "the Server's disk is full",
        "507 with a remedy; every accepted job is completed, also after a kill",
        (
            f"{DISK}a_server_whose_disk_is_full_accepts_nothing_and_loses_nothing",
            f"{DISK}a_server_that_is_killed_on_a_full_disk_finds_every_job_again",
        ),
    ),
    Fault(
        "the wall clock jumps 25 hours, forward and back",
        "no lease ends early or late, none is given twice, no job is removed",
        (
            f"{CLOCK}leases_end_neither_early_nor_late_and_no_device_is_lent_twice",
            f"{CLOCK}jobs_that_run_and_jobs_that_ended_stay_what_they_are",
        ),
    ),
    Fault(
        "64 clients on 4 devices; some are killed, some hang up",
        "the figures below",
        (f"{CROWD}64_clients_on_4_devices_lose_nothing",),
    ),
)


def main() -> int:
    """Run the tests and print what they showed."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        wanted = [test for fault in reversed(FAULTS) for test in fault.tests]  # the longest first
        words = ["-m", "pytest", "-q", "-n2", "-m", "", "--dist", "worksteal", f"--junitxml={told}", *wanted]
        status = subprocess.run([sys.executable, *words], cwd=ROOT, stdout=sys.stderr, check=False).returncode
        cases = list(ET.parse(told).iter("testcase"))  # noqa: S314 - written just now
    print("| fault | what holds | tests | passed | seconds |\n|---|---|---|---|---|")
    for fault in FAULTS:
        mine = [case for case in cases for test in fault.tests if _is(case, test)]
        passed = sum(len(case.findall("*")) == len(case.findall("properties")) for case in mine)
        seconds = sum(float(case.get("time", 0)) for case in mine)
        print(f"| {fault.what} | {fault.holds} | {len(mine)} | {passed} | {seconds:.0f} |")
    print("\n| 64 clients | |\n|---|---|")
    for figure in (each for case in cases for each in case.iter("property")):
        print(f"| {figure.get('name')} | {figure.get('value')} |")
    return status


def _is(case: ET.Element, test: str) -> bool:
    name = test.rpartition("::")[2]
    return case.get("name", "").partition("[")[0] == name


if __name__ == "__main__":
    raise SystemExit(main())
