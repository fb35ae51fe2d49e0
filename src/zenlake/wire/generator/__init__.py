"""From declarations to code and to reference pages; runs when developing, never in a node."""
