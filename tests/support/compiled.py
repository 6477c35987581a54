"""Objects that g++ makes, each once."""

from __future__ import annotations

import subprocess
from pathlib import Path

KERNEL = """
#include <cmath>
extern "C" float helper(float);
namespace { float hidden(float x) { return std::sqrt(x); } }
extern "C" void rms_norm(float* y, const float* x, long n) { for (long i = 0; i < n; ++i) y[i] = hidden(helper(x[i])); }
extern "C" int version = 3;
__attribute__((visibility("hidden"))) int not_seen() { return 4; }
"""
MAIN = 'extern "C" int puts(const char*); int main() { return puts("never printed"); }\n'
PLAIN = "int answer(int x) { return x + 1; }\n"


class Objects:
    """A folder with what g++ made of three sources."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("kernel.cpp", KERNEL), ("main.cpp", MAIN), ("plain.cpp", PLAIN)):
            (folder / name).write_text(text, encoding="utf-8")

    def make(self, name: str, *words: str) -> Path:
        """One output of g++; made once."""
        target = self.folder / name
        if not target.exists():
            subprocess.run(["g++", *words, "-o", name], cwd=self.folder, check=True, capture_output=True)
        return target

    def shared(self) -> Path:
        """A shared object with all that a name can say."""
        return self.make(
            "kernel.so", "-O1", "-shared", "-fPIC", "kernel.cpp", "-Wl,-soname,libkernel.so.1", "-Wl,--build-id=sha1",
            "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/lib",
        )  # fmt: skip

    def object(self) -> Path:
        """An object file."""
        return self.make("kernel.o", "-O1", "-c", "-fPIC", "kernel.cpp")
