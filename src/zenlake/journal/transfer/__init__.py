"""Rows of a journal to and from the files of other tools."""
