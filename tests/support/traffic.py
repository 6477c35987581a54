"""The example inputs of `examples/traffic`, and variants of them that end in each answer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.cli import Answer, inside

EXAMPLE = Path(__file__).parents[2] / "examples" / "traffic"
PROFILE = "decode_ascend_pt"
REVISION = "0.23.0"
FRAMEWORK = ("--arm", "vllm_ascend", "--revision", REVISION, "--stage", "decode")


def generator() -> ModuleType:
    """The script beside the example inputs."""
    name = "akf_examples_traffic"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLE / "generate.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def case(**changes: Any) -> Any:
    """One story of the generator."""
    return generator().Case(**changes)


def written(folder: Path, one: Any = None, **more: str) -> Path:
    """The inputs of one story in a new folder; `more` are further files by their names, `_` for a dot."""
    folder.mkdir()
    generator().write(folder, one or case())
    for name, text in more.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


def survey(*words: object) -> Answer:
    """`akf survey` with the framework of the examples."""
    return inside("survey", *words, *FRAMEWORK)


EAGER_CONFIG = '{"enforce-eager": true, "max-num-seqs": 64}\n'
EAGER_LOG = """\
(APIServer pid=7) INFO 11-30 10:01:00 [cuda_graph.py:110] - Capture sizes: [64, 32, 16]
(APIServer pid=7) INFO 11-30 10:01:00 [cuda_graph.py:110] | Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |
(APIServer pid=7) INFO 11-30 10:01:00 [cuda_graph.py:110] | 16              | 16            | 0            | FULL         | 600   |
(APIServer pid=7) INFO 11-30 10:01:00 [cuda_graph.py:110] | 9               | 9             | 0            | NONE         | 400   |
"""  # noqa: E501 - lines of a log


def variants() -> dict[str, tuple[Any, dict[str, str], tuple[str, ...]]]:
    """Stories by the answer that they end in: the case, further files, further words."""
    return {
        "kernel": (case(), {}, ()),
        "integration": (
            case(graph=False, host_ns={"AddRmsNormBias_Tiling": 45_000}), {"engine_json": EAGER_CONFIG}, (),
        ),
        "configuration": (case(), {"engine_log": EAGER_LOG}, ()),
        "pipeline": (case(between_steps_ns=260_000), {}, ()),
        "no_go": (case(), {}, ("--target", "1.6")),
    }  # fmt: skip
