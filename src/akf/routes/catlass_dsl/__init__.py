"""Route `catlass_dsl`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("catlass_dsl")
