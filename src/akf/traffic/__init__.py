"""From profiles, benchmarks and request traces to Capture and Workload: what runs, and where its time goes.

Invariants:
- Every profile ends as the same frame of device tasks (`kernels`), and one Capture is built from it (`capture`).
- polars is loaded when a profile is read and not before. The modules that import it are imported by functions that have
  called `need_polars`, which says how to get it.
"""

from __future__ import annotations

from akf.contracts.problems import BlockedError


def need_polars() -> None:
    """See that polars is there.

    Raises:
        BlockedError: It is not installed.
    """
    try:
        import polars as pl  # noqa: F401, PLC0415 - takes time to load, and only profiles need it
    except ImportError as error:
        raise BlockedError.of(
            "AKF-F130",
            "profiles are read with polars, and it is not installed",
            hint='run: python -m pip install "ascend-kernel-forge[traffic]"',
        ) from error
