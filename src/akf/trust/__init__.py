"""Who may say what: keys by role, and signatures beside artifacts.

Invariants:
- A signature speaks for one role about one artifact's exact bytes.
- ``cryptography`` is imported only when a key or a signature is touched.
"""
