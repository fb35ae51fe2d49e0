"""From bytes to a tree of what they say, by the declarations: for people, not for nodes."""
