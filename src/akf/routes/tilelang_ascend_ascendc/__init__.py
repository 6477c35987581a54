"""Route `tilelang_ascend_ascendc`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("tilelang_ascend_ascendc")
