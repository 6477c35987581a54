"""Results of benchmark clients, in one meaning.

`ingest` reads files and folders into a ServingBenchmark; `compare` pairs the figures of two of its results by concept,
and by nothing else.
"""

from akf.traffic.bench.compare import compare
from akf.traffic.bench.ingest import QUANTILES, Ingested, ingest
from akf.traffic.bench.sources import tool_of

__all__ = ["QUANTILES", "Ingested", "compare", "ingest", "tool_of"]
