"""What operators see of a node: its admin space, its metrics, the route of a sample."""
