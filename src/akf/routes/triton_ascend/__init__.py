"""Route `triton_ascend`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("triton_ascend")
