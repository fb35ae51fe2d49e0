"""The `zenlake` command: a file for each sub-command, or for two of a kind, listed in `app`."""
