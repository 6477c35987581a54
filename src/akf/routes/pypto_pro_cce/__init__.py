"""Route `pypto_pro_cce`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("pypto_pro_cce")
