"""The program that measures: a trusted parent with oracle, inputs and clock, an untrusted child with the kernel.

Invariants:
- Imports nothing of akf, runs under Python 3.9 and later, and is shipped as a zipapp (`pack.py`).
- The parent never loads a candidate; the child never sees a reference, a digest, a seed or an id.
- It emits raw samples and the outcome of each check; it computes no statistics.
"""
