"""Route `triton_cuda`: declared; this version does not run its tools."""

from akf.routes.route import Declared

ROUTE = Declared("triton_cuda")
