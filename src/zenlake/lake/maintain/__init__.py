"""Keeping tables in shape: compaction, retention, vacuum; rebuilt, repaired, forgotten."""
