"""Route `pypto_tensor_ptoas`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("pypto_tensor_ptoas")
