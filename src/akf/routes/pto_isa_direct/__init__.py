"""Route `pto_isa_direct`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("pto_isa_direct")
