"""Agents whose policies are networks, and whose users report gradients: ``DPPolicyGradient`` and ``DPPPO``."""
