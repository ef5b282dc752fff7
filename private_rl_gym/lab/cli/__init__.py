"""The commands of ``private-rl-gym``, one file for each topic; ``app`` joins them."""
