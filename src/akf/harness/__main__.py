"""Entry of `python -m akf.harness` and of the zipapp."""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
