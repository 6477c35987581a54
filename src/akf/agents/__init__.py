"""Agents that make candidates, and the jobs that they work in.

An agent is untrusted. It reaches the control plane as anyone does: through files and the command line. What it answers
is data, what it costs is metered, and what it makes passes the same checks as a stranger's files.

Read `limits` first, then `files`, `trial`, and an agent, say `tuner`.
"""
