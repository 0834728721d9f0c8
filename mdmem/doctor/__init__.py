"""Looking at the whole installation: what is wrong, how bad it is, and which command mends it."""
