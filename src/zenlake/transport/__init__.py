"""One neighbour: opening, lanes, batches, fragments and leases, with no socket and no clock."""
