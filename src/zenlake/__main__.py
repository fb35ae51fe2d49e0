"""`python -m zenlake` is the `zenlake` command."""

from __future__ import annotations

from zenlake.cli.app import main

if __name__ == "__main__":
    main()
