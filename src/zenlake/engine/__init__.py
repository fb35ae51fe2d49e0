"""The engine: one loop thread that moves bytes between links and nodes, and keeps their time."""
