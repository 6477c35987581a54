"""Toolchains of this machine: installed ones that were registered, and environments made from pinned packages."""
