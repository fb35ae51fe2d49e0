"""Strangers that say anything, in sessions that are open: what `tools/fuzz_sessions.py` sends."""
