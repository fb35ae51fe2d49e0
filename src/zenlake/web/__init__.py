"""The web page of a node: static files that the node serves itself."""
