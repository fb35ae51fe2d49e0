"""Queries of a node's own programs, and replies read and written without message objects."""
