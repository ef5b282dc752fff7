"""The demo says what is true, and leaves a figure."""

import gymnasium as gym
import pytest

from private_rl_gym.experiments import demo


def test_simulated_users_earn_what_is_computed():
    model = gym.make("PrivateRL/RiverSwim-v0").unwrapped.model
    rows = {row.name: row for row in demo.compare(model, users=20_000, seed=1)}
    assert rows["optimal"].exact[-1] == pytest.approx(model.optimal_value())
    assert rows["optimal"].exact[-1] > rows["coin flips"].exact[-1]
    for row in rows.values():
        assert abs(row.simulated[-1] - row.exact[-1]) <= 4 * row.error + 1e-9


def test_the_demo_leaves_a_figure_and_says_where(tmp_path, capsys):
    path = demo.main(["--out", str(tmp_path / "new"), "--users", "500"])
    said = capsys.readouterr().out
    assert str(path) in said
    assert "V* = 3.3973" in said
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--users", "0"], "--users is 0: it must be at least 1"),
        (["--horizon", "0"], "horizon is 0"),
        (["--seed", "-1"], "--seed is -1"),
    ],
)
def test_wrong_arguments_get_a_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as stopped:
        demo.main(arguments)
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err
