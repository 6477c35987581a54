"""Route `catlass_cpp`: one C++ source with CATLASS templates to a device object, by CANN's compiler.

Invariants:
- The CATLASS headers are those of the package, by digest, and come before CANN's.
- All else is as in `ascendc_direct`, an operator's host parts too.
"""

from __future__ import annotations

from akf.routes.ascendc_direct import AscendC

NAME = "catlass_cpp"


class CatlassCpp(AscendC):
    """CATLASS templates."""

    includes = ("{headers}/catlass/include",)


ROUTE = CatlassCpp(NAME)
