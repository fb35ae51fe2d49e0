"""Who needs to hear it: faces, declarations, interests and routes, with no socket and no clock."""
