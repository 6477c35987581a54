"""`python -m akf` and the console script `akf`."""

import sys


def main() -> int:
    """Run the command line; an interrupt before it is even loaded ends as quietly as any other."""
    try:
        from akf.cli.main import main as run  # noqa: PLC0415

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
