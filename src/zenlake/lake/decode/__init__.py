"""Payloads to columns: formats, JSON, Arrow, ROS 2, and the tables that a configuration names."""
