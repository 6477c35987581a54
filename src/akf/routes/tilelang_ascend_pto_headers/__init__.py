"""Route `tilelang_ascend_pto_headers`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("tilelang_ascend_pto_headers")
