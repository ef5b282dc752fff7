"""The learning experiment runs, and tells the truth about its promises."""

import json

import pytest

from private_rl_gym.experiments import learning


def test_curves_figure_and_numbers(tmp_path, capsys):
    path = learning.main(["--users", "300", "--seeds", "2", "--out", str(tmp_path)])
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "DP-UCBVI, JDP, epsilon = 1" in capsys.readouterr().out
    numbers = json.loads((tmp_path / "learning.json").read_text())
    assert len(numbers) == 5
    assert numbers["UCBVI, not private"]["promise"] == "no privacy (epsilon = inf)"
    assert numbers["DP-UCBVI, JDP, epsilon = 10"]["promise"].startswith(
        "(10.0, 1e-06)-JDP, replace one user, 300 users"
    )
    assert all(len(row["regret"]) == 2 and min(row["regret"]) > 0 for row in numbers.values())


def test_trust_models_are_compared_at_one_true_epsilon(tmp_path):
    path = learning.main(["--trust", "--users", "300", "--seeds", "1", "--out", str(tmp_path)])
    assert path.name == "learning-trust.png"
    numbers = json.loads(path.with_suffix(".json").read_text())
    promises = {name[:3]: row["promise"].split("-")[0] for name, row in numbers.items()}
    assert promises.pop("exa").startswith("no privacy")
    assert {name: float(promise.strip("(").split(",")[0]) for name, promise in promises.items()} == {
        "JDP": 10.0,
        "SDP": 10.0,
        "LDP": 10.0,
    }


def test_regret_never_falls():
    for curve in learning.curves(users=200, seeds=1):
        assert (curve.regret[:, 1:] >= curve.regret[:, :-1] - 1e-9).all()


def test_wrong_arguments_get_a_sentence(capsys):
    with pytest.raises(SystemExit):
        learning.main(["--users", "0"])
    assert "--users is 0" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*nothing will be eliminated")
@pytest.mark.parametrize("agent", learning.AGENTS)
def test_every_agents_own_figure_has_a_command(agent, tmp_path):
    path = learning.main(["--agent", agent, "--users", "200", "--seeds", "1", "--out", str(tmp_path)])
    assert path.name == f"learning-{agent}.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(json.loads(path.with_suffix(".json").read_text())) >= 2
