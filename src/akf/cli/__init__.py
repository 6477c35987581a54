"""The command line: one JSON document on stdout, words for people on stderr, the answer in the exit status."""
