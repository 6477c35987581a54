"""What each command takes, one module a plane; `akf.cli.app` gives them their names."""
