"""Route `tilelang_ascend_npuir`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("tilelang_ascend_npuir")
