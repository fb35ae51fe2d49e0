"""One bad neighbour against a router."""
