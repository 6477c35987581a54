"""Packages on their way in: kept under a name while they are used, and refused where there is no room for them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import Request, UploadFile
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteError

from akf.contracts.problems import StorageError
from akf.fabric.gate import body_of, status_of

_CHUNK = 1 << 20


async def unparsed(request: Request, error: Exception) -> Response:
    """A body that the machine could not take is no fault of the body."""
    if not isinstance(error, StarletteError):
        raise error
    if isinstance(error.__cause__, OSError):
        refusal = _no_room(error.__cause__)
        return JSONResponse(body_of(refusal), status_of(refusal))
    return await http_exception_handler(request, error)


def _no_room(error: OSError) -> StorageError:
    message = f"the package cannot be stored: {error.strerror or error}"
    return StorageError.of("AKF-F502", message, hint="free space on the worker's disk, and send it again")


@asynccontextmanager
async def stored(package: UploadFile, folder: Path) -> AsyncIterator[Path]:
    """The uploaded file under a name, for the time of a block."""
    name = ""
    try:
        try:
            handle, name = tempfile.mkstemp(prefix="upload-", dir=folder)
            with os.fdopen(handle, "wb") as stream:
                while data := await package.read(_CHUNK):
                    stream.write(data)
        except OSError as error:
            raise _no_room(error) from error
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - of one file, at once
