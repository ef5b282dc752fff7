"""All benchmarks, each in a process of its own.

A missed target does not stop the others.

Run with ``make bench``.
"""

import subprocess
import sys
from pathlib import Path

MODULES = ("environments", "boundaries", "linear", "gradients", "sweeps")

if __name__ == "__main__":
    codes = []
    for module in MODULES:
        print(f"\n{module}", flush=True)
        codes.append(subprocess.run([sys.executable, Path(__file__).with_name(f"{module}.py")]).returncode)
    sys.exit(max(codes))
