"""Keeping a lake in shape: compaction, retention, vacuum; rebuilt, repaired, forgotten.

And the files beside its tables: its status, and the definitions of views and alerts.
"""
