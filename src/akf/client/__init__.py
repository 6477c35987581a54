"""The client of the Server: submit jobs, follow them, wait for them.

`AKFClient` has the methods of `AIKGClient`, and that name; `AsyncAKFClient` has the same for asyncio. Both work against
the AIKG services of either generation too.
"""

from akf.client.asynchronous import AsyncAKFClient
from akf.client.exchange import ServiceError, UnreachableError
from akf.client.synchronous import AIKGClient, AKFClient

__all__ = ["AIKGClient", "AKFClient", "AsyncAKFClient", "ServiceError", "UnreachableError"]
