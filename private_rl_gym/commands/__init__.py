"""The commands of ``private-rl-gym``, one file for each of what they are about."""
