"""What a process does to itself before a build's command runs in it. Standard library only; nothing here decides."""
