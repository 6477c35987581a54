"""Device code that host code carries inside itself.

Invariants:
- An image counts when it stands in a section for device code and reads as ELF; its end is where its own headers end.
- What is there and cannot be read is a remark, never left out in silence.

CANN puts AICore objects into `.ascend.kernel.SOC.LIBRARY` (seen in vllm-ascend 0.23.0), CUDA fat binaries stand in
`.nv_fatbin` and `__nv_relfatbin`; these may be compressed, and they are only named.
"""

from __future__ import annotations

from typing import Any

from akf.build.inspect import aicore
from akf.build.inspect.elf import AICORE, MAGIC, Image
from akf.contracts.digests import digest
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable

ASCEND = ".ascend.kernel."
FAT = (".nv_fatbin", "__nv_relfatbin")
MAX_IMAGES = 32
"""Of one file."""


def images(host: Image, remarks: list[str]) -> list[dict[str, Any]]:
    """The images in a host's sections for device code."""
    found: list[dict[str, Any]] = []
    tried = 0
    for section in host.sections:
        if section.name in FAT and section.stored:
            remarks.append(f"{section.name} holds CUDA code that is not read")
        if not section.name.startswith(ASCEND) or not section.stored:
            continue
        name, data = printable(section.name), host.bytes_of(section)
        at = data.find(MAGIC)
        while at >= 0:
            if tried == MAX_IMAGES:
                remarks.append(f"only the first {MAX_IMAGES} images that it carries were read")
                return found
            tried += 1
            image = _image(host, data[at:])
            if image is None:
                remarks.append(f"what begins at {at} of {name} cannot be read as ELF")
            else:
                found.append({"section": name, "offset": at, **image})
            at = data.find(MAGIC, at + (image["bytes"] if image is not None else len(MAGIC)))
    return found


def _image(host: Image, data: bytes) -> dict[str, Any] | None:
    """The image that the bytes begin with."""
    try:
        image = Image(data, host.file)
        kernels = aicore.kernels(image) if image.machine == AICORE else []
    except InvalidError:
        return None
    return {
        "machine_number": image.machine,
        "bytes": image.extent,
        "digest": digest(data[: image.extent]),
        "kernels": [printable(kernel.name) for kernel in kernels],
    }
