"""Route `ascendc_direct`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("ascendc_direct")
