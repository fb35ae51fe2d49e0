"""How zenlake grows beyond one machine, in the simulated network."""
