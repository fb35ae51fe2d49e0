"""Readers of a journal: rows by offset, key and time, beside its writer."""
