"""Where samples go: to programs of the node, and on to its neighbours."""
