"""Exclusive leases of devices: who may run on a device now, and a number that no earlier holder has.

Read `protocol` first, then `files`, the back end for one machine.
"""

from akf.lease.devices import devices_of
from akf.lease.files import VARIABLE, FileLeases, default_folder
from akf.lease.protocol import Lease, Leases, held

__all__ = ["VARIABLE", "FileLeases", "Lease", "Leases", "default_folder", "devices_of", "held"]
