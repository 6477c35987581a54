"""The run folder on disk: publication, lock, ledger and layout.

Invariants:
- Nothing canonical is ever edited or overwritten.
- A crash at any instant leaves the old state or the new one, plus at most leftovers with a name of their own.
- An ``OSError`` leaves this package as a ``StorageError`` that names the path and a remedy.
"""
