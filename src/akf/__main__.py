"""`python -m akf` and the console script `akf`."""

import sys

from akf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
