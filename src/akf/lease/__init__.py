"""Exclusive leases of devices: who may run on a device now, and a number that no earlier holder has.

Read `protocol` first, then `files`, the back end for one machine.
"""

from akf.lease.devices import HOST, devices_of
from akf.lease.files import VARIABLE, FileLeases, default_folder
from akf.lease.protocol import Holding, Lease, Leases, held

__all__ = ["HOST", "VARIABLE", "FileLeases", "Holding", "Lease", "Leases", "default_folder", "devices_of", "held"]
