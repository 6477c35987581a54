"""The Server: jobs that are kept, and the workers that run them.

Read `wire` first, what callers send; then `jobs`, a job's way from submission to its end, and `store`, where it is
kept. `app` answers HTTP; `serve` starts it.
"""
