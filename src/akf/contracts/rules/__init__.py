"""Meaning and readiness: what a schema cannot say of a Suite, a Campaign and the files they name."""
