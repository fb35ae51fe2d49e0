"""Queries about the past of keys: `_time`, `_asof`, `_filter`, `_agg`, answered from files."""
