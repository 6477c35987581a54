"""`akf survey`: what a new user's files say before any Campaign exists. Recognise, ingest, triage.

`walk` recognises paths (`paths`, by the importers in `kinds`), `gather` ingests what it found, `answer` triages that.
"""
