"""`audit`: everything in a run is derived again, offline, and compared with what stands there."""

from akf.audit.run import audit

__all__ = ["audit"]
