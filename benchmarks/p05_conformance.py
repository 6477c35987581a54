"""P5: conformance of the validator that AKF uses, and a differential fuzz of the schemas that ship.

Run it from anywhere: `python benchmarks/p05_conformance.py [CASES]`.

1. The official JSON Schema Test Suite, draft 2020-12, from a checkout that `AKF_JSON_SCHEMA_TEST_SUITE` names
   (`suite missing` without it): required, optional and format tests, and the seconds of both libraries.
2. CASES (10,000) mutations of shipped documents, judged by AKF and by `jsonschema`. A document that AKF lets pass and
   `jsonschema` refuses is fail-open and ends the run with status 1; the other direction is listed by reason.
"""

import copy
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import jsonschema  # noqa: E402
import jsonschema_rs  # noqa: E402

from akf.contracts.loader import parse  # noqa: E402 (the checkout comes first)
from akf.contracts.problems import InvalidError  # noqa: E402
from akf.contracts.schemas import kinds, schema, validate  # noqa: E402

CASES = 10_000
LARGEST_BYTES = 10_000
DIALECT = "https://json-schema.org/draft/2020-12/schema"
WORDS = ["", "x", "0", "sha256:" + "0" * 64, "sha256:" + "0" * 64 + "\n", "../x", "a/b", "A", "null", "2026-01-01", "é"]
NUMBERS = [0, -1, 1, 2**53 - 1, 0.5, 1.0, -0.0, 1e-9, True, False, None]


def official(root: Path) -> None:
    """Run the official suite and print how many of its tests hold."""
    remotes = {
        f"http://localhost:1234/{path.relative_to(root / 'remotes').as_posix()}": json.loads(path.read_bytes())
        for path in (root / "remotes").rglob("*.json")
    }

    def fetch(uri: str) -> Any:
        return remotes[uri]

    tests = root / "tests" / "draft2020-12"
    groups = {
        "required": sorted(tests.glob("*.json")),
        "optional": sorted((tests / "optional").glob("*.json")),
        "format": sorted((tests / "optional" / "format").glob("*.json")),
    }
    for name, files in groups.items():
        passed, failed = 0, []
        started = time.perf_counter()
        for path in files:
            for case in json.loads(path.read_bytes()):
                compiled = jsonschema_rs.validator_for(
                    case["schema"], validate_formats=True if name == "format" else None, retriever=fetch
                )
                for test in case["tests"]:
                    if compiled.is_valid(test["data"]) == test["valid"]:
                        passed += 1
                    else:
                        failed.append(f"{path.stem}: {case['description']}: {test['description']}")
        print(f"P5  {name}: {passed}/{passed + len(failed)} in {time.perf_counter() - started:.2f} s")
        for text in failed:
            print(f"    does not hold: {text}")


def documents() -> list[dict[str, Any]]:
    """Return the shipped documents, the large ones left out: `jsonschema` takes its time."""
    found = []
    for folder in ("suites", "examples", "adapters"):
        for path in sorted((ROOT / folder).rglob("*.json")):
            value = json.loads(path.read_bytes())
            if path.stat().st_size <= LARGEST_BYTES and isinstance(value, dict) and value.get("kind") in kinds():
                found.append(value)
    return found


def containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def mutate(rng: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with one to three changes: a value, a field more or less, an item twice, another type."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        place = rng.choice(list(containers(value)))
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        change = rng.choice(["more", "less", "twice", "other", "other"])
        if change == "more" and isinstance(place, dict):
            place[rng.choice(["unknown", "id", "kind", "note", "$schema", "extra_ratio"])] = rng.choice(WORDS)
        elif change == "less" and keys:
            del place[rng.choice(keys)]
        elif change == "twice" and isinstance(place, list) and place:
            place.append(copy.deepcopy(rng.choice(place)))
        elif keys:
            key = rng.choice(keys)
            old = place[key]
            near = (
                [old + 1, -old, old / 3] if isinstance(old, int | float) else [f"{old}\n", f"{old}x", str(old).upper()]
            )
            place[key] = rng.choice([*rng.choices(WORDS, k=2), *rng.choices(NUMBERS, k=3), [], {}, [old], *near])
    return value


def differential(cases: int) -> int:
    """Return how many mutations AKF lets pass and `jsonschema` refuses."""
    rng = random.Random(20_260_101)
    sources = documents()
    oracles = {value["kind"]: jsonschema.Draft202012Validator(schema(value["kind"])) for value in sources}
    answers: Counter[str] = Counter()
    stricter: Counter[str] = Counter()
    for _ in range(cases):
        source = rng.choice(sources)
        kind = source["kind"]
        value = mutate(rng, source)
        try:
            problems = validate(parse(json.dumps(value).encode(), "f"), kind)
        except InvalidError as error:
            problems = list(error.problems)
        oracle = oracles[kind].is_valid(value)
        answers[f"{'refused' if problems else 'valid'} by AKF, {'valid' if oracle else 'refused'} by jsonschema"] += 1
        if oracle and problems:
            stricter[problems[0].code] += 1
        if not oracle and not problems:
            print(f"    fail-open: {json.dumps(value)[:400]}")
    print(f"P5  differential fuzz of {len(sources)} documents, {cases} cases: {dict(sorted(answers.items()))}")
    print(f"    refused by AKF alone, by code: {dict(sorted(stricter.items()))}")
    return answers["valid by AKF, refused by jsonschema"]


def main() -> int:
    if "AKF_JSON_SCHEMA_TEST_SUITE" in os.environ:
        official(Path(os.environ["AKF_JSON_SCHEMA_TEST_SUITE"]))
    else:
        print("P5  official suite: suite missing (name a checkout in AKF_JSON_SCHEMA_TEST_SUITE)")
    return 1 if differential(int(sys.argv[1]) if len(sys.argv) > 1 else CASES) else 0


if __name__ == "__main__":
    sys.exit(main())
