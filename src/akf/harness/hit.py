"""Hit proof on the host: the process's own maps, a negative control and a perturbation control.

Invariants:
- Identity is the device and inode of a sealed memory file whose bytes have the Build's digest: no path is trusted.
- The evidence comes from the process that computes, read by the parent from the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import outcome
from .memory import SealedFile
from .outcome import Check
from .process import Child, Loadable


@dataclass(frozen=True)
class Observation:
    """What one child mapped while it held its kernel."""

    objects: tuple[tuple[str, int], ...]
    executable: tuple[tuple[str, int, int, int], ...]
    files: tuple[str, ...]
    function: int

    def maps(self, sealed: SealedFile) -> bool:
        """Whether the sealed file is mapped for execution."""
        return any((device, inode) == (sealed.device, sealed.inode) for device, inode, _, _ in self.executable)

    def calls_into(self, sealed: SealedFile) -> bool:
        """Whether the function's address lies in the sealed file."""
        return any(
            (device, inode) == (sealed.device, sealed.inode) and start <= self.function < end
            for device, inode, start, end in self.executable
        )


def observe(child: Child) -> Observation:
    """Read the child's maps."""
    mappings = child.maps()
    return Observation(
        objects=tuple(sorted({(item.device, item.inode) for item in mappings if item.inode})),
        executable=tuple((item.device, item.inode, item.start, item.end) for item in mappings if item.executable),
        files=tuple(sorted({item.path for item in mappings if item.executable and item.path.startswith("/")})),
        function=child.function,
    )


def prove(
    check: Check,
    seen: dict[str, Observation],
    loadables: dict[str, Loadable],
    digest: str,
    perturbed: dict[str, Any],
) -> None:
    """Positive, negative and perturbation control; every one that does not hold is a reason."""
    missing: list[str] = []
    kernel = loadables["candidate"].kernel
    candidate, baseline = seen.get("candidate"), seen.get("baseline")
    if candidate is None or not candidate.maps(kernel):
        missing.append("the candidate's object is not mapped in its process")
    elif not candidate.calls_into(kernel):
        missing.append("the launched function does not lie in the candidate's object")
    if kernel.reread() != digest:
        missing.append("the mapped bytes do not have the Build's digest")
    if baseline is None or baseline.maps(kernel):
        missing.append("negative control: the baseline's process maps the candidate's object")
    if not perturbed.get("rejected"):
        missing.append("perturbation control: the wrong kernel's output passes the oracle")
    if not perturbed.get("differs"):
        missing.append("perturbation control: the wrong kernel's output is the candidate's")
    check.facts.update(
        {
            "object_digest": digest,
            "mapped": candidate is not None and candidate.maps(kernel),
            "function_inside": candidate is not None and candidate.calls_into(kernel),
            "mapped_in_baseline": baseline is not None and baseline.maps(kernel),
            "perturbed": perturbed,
            "extra_objects": sorted(set(candidate.files) - set(baseline.files)) if candidate and baseline else [],
        }
    )
    for text in missing:
        check.add(outcome.HIT_NOT_PROVED, detail=text)
    check.settle()
