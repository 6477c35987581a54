"""The generated sections of hand-written pages, by name."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from akf.candidates.claim import METRICS
from akf.cli.app import command
from akf.cli.commands import demo as demo_command
from akf.cli.main import DEFECT, INTERRUPTED
from akf.cli.result import NOT_MET
from akf.contracts import gates, limits, problems
from akf.contracts.models.base import Platform
from akf.contracts.rules import routes, soc
from akf.store.untrusted import MAX_FILES, MAX_LEVELS, MAX_TOTAL_BYTES
from akf.traffic.traces.layouts import layouts
from akf.trust.roles import OWNERS

from . import measured
from .artifacts import UNSIGNED, slug
from .markdown import blocks, first_line, shown, table
from .pages import ROOT, pages

WIDTH = 80
DEMO = Path(__file__).resolve().parents[1] / "demo.json"


def command_names() -> list[str]:
    """Every command; those of a group by their full names, such as `keys init`."""
    found = []
    for name, item in sorted(_group().commands.items()):
        inner = getattr(item, "commands", None)
        found += [name] if inner is None or item.invoke_without_command else []
        found += [f"{name} {each}" for each in sorted(inner or ())]
    return found


def usage(name: str) -> list[str]:
    """What `akf NAME --help` prints."""
    context, found = _command(name)
    return shown(found.get_help(context))


def _commands() -> list[str]:
    rows = [
        (f"[`akf {name}`]({name.replace(' ', '-')}.md)", first_line(_command(name)[1].help or ""))
        for name in command_names()
    ]
    return table(("command", "what it does"), rows)


def _exit_codes() -> list[str]:
    """Errors carry their own status and meaning; the others are the command line's."""
    found = [value for value in vars(problems).values() if isinstance(value, type)]
    errors = [value for value in found if issubclass(value, problems.AkfError) and value is not problems.AkfError]
    rows = [(error.exit_code, first_line(error.__doc__ or "")) for error in errors]
    rows += [
        (0, "Done. Any verdict is a successful judgement. A valid draft that is not ready exits 0 too."),
        (NOT_MET, "Done, but `--require-ready` or `--require VERDICT` is not met."),
        (INTERRUPTED, "Interrupted; nothing partial was left."),
    ]
    assert DEFECT in {status for status, _ in rows}  # noqa: S101 - listed by its error class
    return table(("status", "meaning"), [(str(status), text) for status, text in sorted(rows)])


def _owners() -> list[str]:
    rows = []
    for role in dict.fromkeys(OWNERS.values()):
        kinds = [f"[{kind}](artifacts/{slug(kind)}.md)" for kind, owner in OWNERS.items() if owner == role]
        rows.append((role, ", ".join(kinds)))
    rows += [(who, f"[{kind}](artifacts/{slug(kind)}.md), not signed") for kind, who in UNSIGNED.items()]
    return table(("role", "writes and signs"), rows)


def _metrics() -> list[str]:
    rows = [(f"`{bound}`", ", ".join(f"`{name}`" for name in names)) for bound, names in METRICS.items()]
    return table(("`active_bound`", "`metric` is one of"), rows)


def _limits() -> list[str]:
    assert limits.MAX_SAFE_INTEGER == 2**53 - 1  # noqa: S101 - as the text below says
    return table(("what", "at most"), [
        ("bytes of an artifact or an input", f"{limits.MAX_FILE_BYTES:,}"),
        ("arrays and objects inside one another", str(limits.MAX_DEPTH)),
        ("a number's magnitude", "2^53 - 1"),
        ("characters of an id", str(limits.MAX_ID)),
        ("characters of a campaign id or a candidate id", str(limits.MAX_SHORT_ID)),
        ("bytes of a path in an artifact", str(limits.MAX_PATH_BYTES)),
        ("bytes between two slashes of a path", str(limits.MAX_SEGMENT_BYTES)),
        ("problems that are listed for one file", f"{limits.MAX_PROBLEMS:,}"),
    ])  # fmt: skip


def _submission_limits() -> list[str]:
    return table(("what", "at most"), [
        ("files", str(MAX_FILES)),
        ("bytes of all files together", f"{MAX_TOTAL_BYTES:,}"),
        ("folders inside one another", str(MAX_LEVELS)),
    ])  # fmt: skip


def _gates() -> list[str]:
    """The checks of every gate, for a Campaign with one rule of each sort."""
    acceptance = {
        "gains": [{"id": "RULE", "gate": gate} for gate in ("operator", "model", "serving")],
        "guards": [{"id": "RULE", "gate": gate} for gate in ("model", "serving")],
        "accuracy": [{"name": "SUITE"}],
    }
    rows = []
    for gate in gates.GATES:
        for platform in get_args(Platform) if gate == "environment" else ("",):
            campaign = {"platform": platform, "acceptance": acceptance}
            names = dict.fromkeys(gates.required_checks(gate, campaign, ("ROW",)))
            label = f"`{gate}`, platform `{platform}`" if platform else f"`{gate}`"
            rows.append((label, ", ".join(f"`{name}`" for name in names)))
    return table(("gate", "checks that must hold"), rows)


def _routes() -> list[str]:
    rows = [
        (f"`{platform}`", f"`{routes.TOOLKITS[platform]}`", ", ".join(f"`{name}`" for name in names))
        for platform, names in routes.ROUTES.items()
    ]
    return table(("platform", "toolkit", "routes"), rows)


def _soc_names() -> list[str]:
    rows = [
        (f"`{family}`", soc.PRODUCTS.get(family, "-"), ", ".join(f"`{name}`" for name in names))
        for family, names in soc.FAMILIES.items()
    ]
    rows.append(("`ascend950`", soc.PRODUCTS["ascend950"], "`ascend950pr_XXXX`, `ascend950dt_XXXX`"))
    return table(("family", "product", "names"), rows)


def _trace_layouts() -> list[str]:
    forms = {
        "seconds": "seconds, with a point",
        "whole": "whole milliseconds",
        "number": "seconds",
        "calendar": "dates, with or without a zone, up to 9 decimals",
    }
    rows = []
    for layout in layouts().values():
        fields = layout.columns + layout.also if layout.columns else layout.required
        size = layout.block_size_tokens
        rows.append(
            (
                f"`{layout.name}`",
                f"{layout.title}: {layout.published}; {layout.licence}",
                ", ".join(f"`{field}`" for field in fields),
                forms[layout.time] if layout.unit_ns or layout.time == "calendar" else "`--sec-multiplier`",
                f"{size} tokens" if size else "none",
                "an output of 0 tokens" if layout.zero_output == "failure" else "not marked",
            )
        )
    return table(("layout", "publication", "fields", "time", "blocks", "failures"), rows)


def _demo() -> list[str]:
    """The table of the recorded demo, drawn by the demo itself."""
    answer = json.loads(DEMO.read_text(encoding="utf-8"))
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        demo_command._table(answer["candidates"])  # noqa: SLF001 - the very table that the demo prints
    sentence = (
        f"That run took {answer['wall_s']} s. The noise limit of its machine was {answer['noise_limit_ratio']:.1%}. "
        f"The audit found {answer['audit']['ledger_lines']} ledger lines, and all of them hold. The whole answer is "
        "[docs/demo.json](docs/demo.json)."
    )
    return [*shown(text.getvalue().strip("\n")), "", sentence]


def _blocks() -> list[str]:
    """The blocks that no test runs on every machine; the links are those of docs/contributing.md."""
    rows = []
    for path in pages():
        for block in blocks(path.read_text(encoding="utf-8")):
            if "needs" in block.marks:
                name = path.relative_to(ROOT).as_posix()
                link = name.removeprefix("docs/") if name.startswith("docs/") else f"../{name}"
                first = next((line[2:] for line in block.lines if line.startswith("$ ")), "")
                rows.append((f"`{block.marks['needs']}`", f"[{name}]({link})", block.heading, f"`{first}`"))
    return table(("needs", "page", "section", "first command"), sorted(rows))


def _group() -> Any:
    return command()


def _command(name: str) -> tuple[Any, Any]:
    """The context in which a command writes its help, and the command."""
    found = _group()
    form = {"resilient_parsing": True, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = found.make_context("akf", [], **form)
    for word in name.split():
        found = found.commands[word]
        context = found.make_context(word, [], parent=context, **form)
    return context, found


def _cheats() -> list[str]:
    """Every code that rejects, with the cheat that it stops and the honest candidate that it lets pass."""
    found = tomllib.loads((ROOT / "tests" / "evaluate" / "registry.toml").read_text(encoding="utf-8"))

    def named(entry: str) -> str:
        return f"`{entry.rpartition(':')[2]}`"

    rows = [(f"`{code}`", named(each["exploit"]), named(each["control"])) for code, each in sorted(found.items())]
    return table(("code", "stops", "lets pass"), rows)


SECTIONS: dict[str, Callable[[], list[str]]] = {
    "blocks": _blocks,
    "cheats": _cheats,
    "commands": _commands,
    "demo": _demo,
    "exit-codes": _exit_codes,
    "gates": _gates,
    "limits": _limits,
    "measured": measured.table,
    "metrics": _metrics,
    "owners": _owners,
    "routes": _routes,
    "soc-names": _soc_names,
    "submission-limits": _submission_limits,
    "trace-layouts": _trace_layouts,
}
