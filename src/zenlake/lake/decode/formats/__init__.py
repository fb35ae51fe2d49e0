"""Ways of writing values down that the lake reads by itself: one small class for each."""
