"""Links, neighbours and sessions of a node, and the network beyond them."""
