"""What a private agent logs, saves or prints comes from releases alone.

Two runs see the same releases; in one of them the users behind these were others, among them a canary with a reward
that nobody else has. Every artefact of the two runs has to be the same, but for the time it was made at.
"""

import csv
import io
import json
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from private_rl_gym import agents
from private_rl_gym.lab.registry import AGENTS
from private_rl_gym.wrappers import Boundary, JDPBillboard, LDPUserSide, SDPShuffler

pytestmark = pytest.mark.filterwarnings("ignore:.*nothing will be eliminated")
H, USERS, BATCH = 4, 60, 10
CANARY = 0.123456789
OURS = sorted(set(AGENTS) - {"APEVE"})  # that is SDPPE


def river():
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H, variant="open-banks")


class Canary(gym.Wrapper):
    """In the second run the seventh user is paid what nobody else is; the others are others, too."""

    user, shown = 0, False

    def reset(self, **options):
        self.user += 1
        return self.env.reset(**options)

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, CANARY if self.shown and self.user == 7 else reward, *rest


BOARDS = {
    "jdp": lambda env, summed: JDPBillboard(env, 2.0, 1e-6, users=USERS, statistic=summed, schedule=BATCH, rng=5),
    "sdp": lambda env, _: SDPShuffler(env, 2.0, 1e-6, users=USERS, schedule=BATCH, rng=5),
    "ldp": lambda env, summed: LDPUserSide(env, 2.0, users=USERS, statistic=summed, schedule=BATCH, rng=5),
}


def run(name, make, folder, monkeypatch, capsys, releases=None, agent=None):
    """One run; with ``releases`` the board shows these in place of its own."""
    env = Canary(river())
    env.shown = releases is not None
    kind = agent or getattr(agents, name)
    board = BOARDS[make](env, kind.statistic)
    board.unwrapped.reset(seed=1 if releases is None else 2)
    seen = {}
    for shown in ("release", "batch"):
        original = getattr(Boundary, shown).fget

        def outside(self, shown=shown, original=original):
            release = original(self)
            seen.setdefault((shown, release.version), release)
            return release if releases is None else releases[shown, release.version]

        monkeypatch.setattr(Boundary, shown, property(outside))
    folder.mkdir()
    short = {"width_scale": 1e-3} if name == "DPSE" else {}  # epochs that so few users can fill
    model = kind("TabularPolicy", board, verbose=1, seed=0, **short)
    model.set_logger(logger := configure(str(folder / "log"), ["csv", "json", "log", "stdout", "tensorboard"]))
    capsys.readouterr()
    for _ in range(USERS // BATCH):
        callback = CheckpointCallback(save_freq=5 * H, save_path=str(folder / "checkpoints"), verbose=2)
        model.learn(BATCH * H, callback=callback, log_interval=1, reset_num_timesteps=False)
    model.save(folder / "agent")
    print(repr(model.board), str(model.board.ledger), repr(model.policy), model.predict(0))
    with pytest.raises(RuntimeError) as refused:
        model.learn(H)
    logger.close()
    monkeypatch.undo()
    return seen, artefacts(folder, capsys.readouterr().out, str(refused.value))


def artefacts(folder, printed, refused):
    """Everything that the run left, without what depends on the clock, on the folder, or on chance."""
    found = {"refused": refused}
    found["printed"] = [
        line for line in printed.replace(str(folder), "").splitlines() if "fps" not in line and "--" not in line
    ]
    logged = (folder / "log" / "log.txt").read_text().replace(str(folder), "")
    found["log"] = [line for line in logged.splitlines() if "fps" not in line]
    with (folder / "log" / "progress.csv").open() as file:
        found["csv"] = [{k: v for k, v in row.items() if "fps" not in k} for row in csv.DictReader(file)]
    lines = [json.loads(line) for line in (folder / "log" / "progress.json").read_text().splitlines()]
    found["json"] = [{k: v for k, v in line.items() if "fps" not in k} for line in lines]
    events = EventAccumulator(str(folder / "log")).Reload()
    tags = events.Tags()
    assert tags["scalars"]
    assert not any(tags[kind] for kind in tags if kind != "scalars" and tags[kind] is not True and tags[kind])
    found["events"] = {
        tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags["scalars"] if "fps" not in tag
    }
    for path in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                if name.endswith(".npy"):
                    content = np.load(io.BytesIO(content), allow_pickle=False).tolist()
                else:
                    content = {k: v for k, v in json.loads(content).items() if k != "board"}  # a name by chance
                    content["origins"] = sorted(map(str, (content.get("origins") or {}).values()))  # so named, too
                found[f"{path.name}/{name}"] = content
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("events.out")]
    assert {path.suffix for path in files} == {".csv", ".json", ".txt", ".zip"}  # and nothing was left out
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board"),
    [
        (name, board)
        for name in OURS
        for board in BOARDS
        if (name, board) not in {("SDPPE", "jdp"), ("DPSE", "jdp")}
        and (board != "sdp" or getattr(agents, name).statistic == "tabular")
    ],
)
def test_every_artefact_is_made_from_releases_alone(name, board, tmp_path, monkeypatch, capsys):
    releases, first = run(name, board, tmp_path / "one", monkeypatch, capsys)
    batched = getattr(agents, name).plans_batches  # such an agent decides how often there is a release
    assert len(releases) > (3 if batched else USERS // BATCH)
    _, second = run(name, board, tmp_path / "two", monkeypatch, capsys, releases)
    assert len(first) > 10
    assert first.keys() == second.keys()
    for key in first:
        assert first[key] == second[key], key


@pytest.mark.parametrize("leak", ["logs", "saves"])
def test_an_agent_that_looks_behind_the_board_is_caught(leak, tmp_path, monkeypatch, capsys):
    class Leaky(agents.UCBVI):
        def progress(self):
            return {"leak": float(self.board._admission.bound.sums.closed_sums.sum() % 9973)} if leak == "logs" else {}

        def state(self):
            return super().state() | (
                {"leak": self.board._admission.bound.sums.closed_sums.copy()} if leak == "saves" else {}
            )

    releases, first = run("", "jdp", tmp_path / "one", monkeypatch, capsys, agent=Leaky)
    _, second = run("", "jdp", tmp_path / "two", monkeypatch, capsys, releases, agent=Leaky)
    assert first != second
