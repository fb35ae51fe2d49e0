"""The `zenlake` command: one file a sub-command, listed in `app`."""
