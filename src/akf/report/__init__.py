"""Reports: what a command found, as a model, and the model as one page.

Invariants:
- The model (`akf.report.model`) is plain values with a JSON form that round-trips, so an old report can be drawn again.
- The page (`akf.report.page`) is a function of the model alone: the same report gives the same bytes. It is one file
  without scripts and without anything fetched; its own security policy forbids both.
- Text of a report is data: it is escaped at one place (`akf.report.markup`), whatever it holds.
- A chart is never the only place of a number: what it draws stands beside it as text.
"""
