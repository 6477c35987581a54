"""Traces of requests to a Workload."""
