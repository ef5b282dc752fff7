"""The command line: ``private-rl-gym --help``."""

from __future__ import annotations

from typing import Annotated

import typer

import private_rl_gym
from private_rl_gym.lab.cli.audit import audit
from private_rl_gym.lab.cli.budget import budget
from private_rl_gym.lab.cli.learn import learn, spent
from private_rl_gym.lab.cli.list_ import list_
from private_rl_gym.lab.cli.pictures import plot, table
from private_rl_gym.lab.cli.plan import plan
from private_rl_gym.lab.cli.show import show
from private_rl_gym.lab.cli.sweep import sweep
from private_rl_gym.lab.cli.train import train

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True, add_completion=True, rich_markup_mode="markdown", pretty_exceptions_enable=False
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"private-rl-gym {private_rl_gym.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Run private reinforcement learning as ordinary Gymnasium code.

    Begin with `private-rl-gym list`, then `private-rl-gym sweep riverswim`.
    """


app.command(name="list")(list_)
for command in (plan, train, learn, spent, sweep, plot, table, show, budget, audit):
    app.command()(command)


def main() -> None:
    """Run ``private-rl-gym``."""
    app(prog_name="private-rl-gym")


if __name__ == "__main__":
    main()
