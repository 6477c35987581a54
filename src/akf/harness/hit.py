"""Hit proof on the host: what the process maps or has as files, a negative control and a perturbation control.

Invariants:
- Of a shared object, identity is the device and inode of a sealed memory file whose bytes have the Build's digest: no
  path is trusted.
- What such a process can execute is its object, its launcher, the compiler's runtime and what the baseline's process
  has as well. Another library, or code that it made itself, may do the object's work.
- Of a module, it is the digest of the files in the process's own root, read through the kernel; they are read-only.
- The evidence comes from the process that computes, read by the parent from the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from . import outcome
from .memory import SealedFile
from .outcome import Check
from .process import Child, Loadable
from .tree import Bundle

RUNTIME = ("libstdc++.so", "libm.so", "libmvec.so", "libgcc_s.so", "libc.so")
"""Libraries that the compiler links to any object."""
_MEMORY = "/memfd:"


@dataclass(frozen=True)
class Observation:
    """What one child mapped while it held its kernel."""

    objects: tuple[tuple[str, int], ...]
    executable: tuple[tuple[str, int, int, int], ...]
    files: tuple[str, ...]
    function: int
    memory: tuple[tuple[str, int], ...] = ()
    made: int = 0
    tree: str = ""

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
    code = [item for item in mappings if item.executable and item.path.startswith("/")]
    return Observation(
        objects=tuple(sorted({(item.device, item.inode) for item in mappings if item.inode})),
        executable=tuple((item.device, item.inode, item.start, item.end) for item in mappings if item.executable),
        files=tuple(sorted({item.path for item in code if not item.path.startswith(_MEMORY)})),
        memory=tuple(sorted({(item.device, item.inode) for item in code if item.path.startswith(_MEMORY)})),
        function=child.function,
        made=sum(item.executable and not item.inode and not item.path.startswith("[") for item in mappings),
        tree=child.tree(),
    )


def prove(
    check: Check,
    seen: dict[str, Observation],
    loadable: Union[Loadable, Bundle],
    digest: str,
    perturbed: dict[str, Any],
) -> None:
    """Positive, negative and perturbation control; every one that does not hold is a reason."""
    candidate, baseline = seen.get("candidate"), seen.get("baseline")
    if isinstance(loadable, Bundle):
        missing = _files(check, candidate, baseline, digest)
    else:
        missing = _objects(check, candidate, baseline, loadable, digest)
    if not perturbed.get("rejected"):
        missing.append("perturbation control: the wrong kernel's output passes the oracle")
    if not perturbed.get("differs"):
        missing.append("perturbation control: the wrong kernel's output is the candidate's")
    check.facts["perturbed"] = perturbed
    for text in missing:
        check.add(outcome.HIT_NOT_PROVED, detail=text)


def _files(check: Check, candidate: Optional[Observation], baseline: Optional[Observation], digest: str) -> list[str]:
    """The candidate's files, and only in its own process."""
    found, other = (seen.tree if seen else "" for seen in (candidate, baseline))
    check.facts.update({"object_digest": digest, "files": found == digest, "files_in_baseline": other == digest})
    missing = []
    if found != digest:
        missing.append("the candidate's files in its process do not have the Build's digest")
    return missing


def _objects(
    check: Check, candidate: Optional[Observation], baseline: Optional[Observation], loadable: Loadable, digest: str
) -> list[str]:
    """The candidate's object, nothing else that could do its work, and only in its own process."""
    missing: list[str] = []
    kernel = loadable.kernel
    if candidate is None or not candidate.maps(kernel):
        missing.append("the candidate's object is not mapped in its process")
    elif not candidate.calls_into(kernel):
        missing.append("the launched function does not lie in the candidate's object")
    if kernel.reread() != digest:
        missing.append("the mapped bytes do not have the Build's digest")
    extra = sorted(set(candidate.files) - set(baseline.files)) if candidate and baseline else []
    other = [path for path in extra if not path.rpartition("/")[2].startswith(RUNTIME)]
    if candidate is not None and set(candidate.memory) - {
        (file.device, file.inode) for file in (loadable.kernel, loadable.launcher)
    }:
        other.append("a memory file")
    missing += [f"positive control: its process can execute {what}, which is not its Build's" for what in other]
    if candidate and baseline and candidate.made > baseline.made:
        missing.append("positive control: its process can execute memory that holds no file")
    if baseline is None or baseline.maps(kernel):
        missing.append("negative control: the baseline's process maps the candidate's object")
    check.facts.update(
        {
            "object_digest": digest,
            "mapped": candidate is not None and candidate.maps(kernel),
            "function_inside": candidate is not None and candidate.calls_into(kernel),
            "mapped_in_baseline": baseline is not None and baseline.maps(kernel),
            "extra_objects": extra,
        }
    )
    return missing
