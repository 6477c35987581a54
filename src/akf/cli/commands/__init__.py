"""What each command does: arguments to calls, results to documents."""
