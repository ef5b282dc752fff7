"""Regret against the number of states: the command, its figure, and what it shows."""

import json

import numpy as np
import pytest

from private_rl_gym.experiments import linear


def test_the_figure_and_its_numbers(tmp_path, capsys):
    path = linear.main(["--states", "5", "30", "--users", "2000", "--seeds", "2", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "PrivateLinOptVI, epsilon = 10" in said
    assert path.read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((tmp_path / "linear.json").read_text())
    assert {row["states"] for row in numbers} == {5, 30}
    regret = {(row["agent"], row["epsilon"], row["states"]): np.mean(row["regret"]) for row in numbers}
    assert len(regret) == len(numbers) == 2 * (1 + 2 * 4 + 2)
    for states in (5, 30):
        assert (
            regret["UCRLVTR", None, states] < regret["PrivateLinOptVI", 10.0, states] < regret["uniform", None, states]
        )


def test_learners_from_counts_stop_where_counts_would_fill_the_memory():
    found = list(linear.points([linear.LARGEST_COUNTED + 1], [10.0], users=50, seeds=1))
    assert {point.agent for point in found} == {"uniform", "PrivateLinOptVI", "PrivateLinOptPO", "UCRLVTR"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--users", "0"], "--users is 0"),
        (["--states", "2"], "--states is 2: mixtures have kernels of three next states"),
        (["--epsilons", "-1"], "--epsilons are budgets"),
        (["--epsilons", "inf"], "--epsilons are budgets"),
    ],
)
def test_wrong_arguments_get_a_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        linear.main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
