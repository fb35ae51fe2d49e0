"""The Zenoh 1.x protocol, page by page; everything else in `wire` is derived from here."""
