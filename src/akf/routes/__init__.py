"""Routes: how one kind of source becomes a binary with a declarative launch spec."""
