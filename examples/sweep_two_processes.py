"""A sweep on two processes, or on Dask, that can be interrupted and resumed.

The axes are agents, epsilon and seeds. Every cell is written to disk as soon as it finishes, under the hash of its
configuration. Interrupt or kill the sweep, and run the same command again: only the missing cells run. You see cells
finish, and then a table of regret with its error. A second call prints the table at once. For Dask (``pip install
'private-rl-gym[dask]'``), start ``dask scheduler`` and some ``dask worker`` processes first:

    python examples/sweep_two_processes.py --users 2000
    python examples/sweep_two_processes.py --users 2000 --scheduler tcp://127.0.0.1:8786
"""

import argparse
import tempfile
from pathlib import Path

from private_rl_gym.lab.grids.engines import OnDask, OnJoblib
from private_rl_gym.lab.grids.grid import grid_of
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import as_markdown, summarize
from private_rl_gym.lab.grids.sweep import Tally, sweep


def told(tally: Tally, answer: object) -> None:
    """Show the tally after every cell."""
    if answer is not None:
        print(tally.sentence, flush=True)


if __name__ == "__main__":  # worker processes import this file
    parser = argparse.ArgumentParser(description="A sweep on two processes or on Dask.")
    parser.add_argument("--users", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scheduler", help="address of a Dask scheduler; without it, two processes of this machine")
    parser.add_argument("--store", type=Path, help="folder of the records; by default one that is thrown away")
    args = parser.parse_args()

    # Every list is an axis, and the grid is the product. The same words may stand in a TOML file.
    grid = grid_of(
        {
            "environment": {"id": "RiverSwim", "horizon": 10},
            "users": args.users,
            "seeds": args.seeds,
            "runs": [
                {"agent": "UCBVI", "boundary": "open", "label": "not private"},
                {
                    "agent": ["DPUCBVI", {"name": "FrugalUCBVI", "stationary": True}],
                    "boundary": {"name": "jdp", "epsilon": [1.0, 4.0], "delta": 1e-6, "batch_size": 50},
                },
            ],
        }
    )
    engine = OnDask(args.scheduler) if args.scheduler else OnJoblib(2)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(args.store or Path(folder) / "runs")
        sweep(grid, store, engine, told)
        print(sweep(grid, store, engine).sentence, "\n")
        print(as_markdown(summarize(store.read(grid.cells))))
