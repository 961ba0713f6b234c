"""What docs/extend.md says, word for word, from outside the package: its files in a folder, its commands in their order."""

import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import small_run
from regard.config.toml import ADDED, load
from regard.models.saved import load_model
from regard.run import Run

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text("utf-8")


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    for name, text in re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text)
    return folder


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess:
    """In a process of its own, from the folder of the files."""
    assert words[0] == "regard"
    shrunk = (
        ["--train.device", "cpu", "--train.precision", "fp32", "--progress", "none"]
        if words[1] == "train" and "--resume" not in words
        else []
    )
    return subprocess.run(
        [*small_run.command(*words[1:]), *shrunk], cwd=folder, input="a b c\n", capture_output=True, text=True, env=small_run.environment()
    )


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, subprocess.CompletedProcess]:
    """Every command of the page, by its verb."""
    return {words[1]: run(words, folder) for words in commands()}


def test_forty_lines_and_no_file_of_the_package(folder: Path):
    assert len((folder / "my_score.py").read_text().splitlines()) <= 40
    assert [words[1] for words in commands()] == ["laws", "train", "translate", "look", "plan"]


def test_every_command_works(done: dict[str, subprocess.CompletedProcess]):
    for verb, ended in done.items():
        assert ended.returncode == 0, (verb, ended.stderr)
    assert "holds" in done["laws"].stdout and "18 laws, none is broken" in done["laws"].stdout
    assert len(done["translate"].stdout.splitlines()) == 1


def test_the_run_and_the_model_remember_the_file_and_its_hash(folder: Path, done):
    sha256 = hashlib.sha256((folder / "my_score.py").read_bytes()).hexdigest()
    for file in ("run.toml", "best/model.toml"):
        text = (folder / "runs/mine" / file).read_text()
        assert f'"my_score.py" = "{sha256}"' in text and 'kind = "sharpened"' in text
    assert not ADDED, "nothing is left behind in this process"


def test_a_kernel_is_chosen_with_its_reason_and_parameters_are_counted(done):
    assert "sdpa" in done["plan"].stdout or "gathered" in done["plan"].stdout
    assert "sharpened" in done["plan"].stdout


def test_its_weights_are_seen(folder: Path, done):
    page = (folder / "runs/mine.html").read_text("utf-8")
    assert "cross" in page and len(page) > 40_000


def test_opening_never_runs_what_was_not_passed(folder: Path, done):
    ended = run(["regard", "translate", "runs/mine"], folder)
    assert ended.returncode == 2 and "made with my_score.py, which was not passed; give --extend my_score.py" in ended.stderr
    again = run(["regard", "train", "--resume", "runs/mine"], folder)
    assert again.returncode == 2 and "give --extend my_score.py" in again.stderr


def test_a_run_goes_on_only_with_the_file_as_it_was(folder: Path, done, tmp_path: Path):
    (tmp_path / "my_score.py").write_text((folder / "my_score.py").read_text() + "# changed\n")
    words = ["regard", "train", "--resume", "runs/mine", "--extend", str(tmp_path / "my_score.py")]
    ended = run(words, folder)
    assert ended.returncode == 2 and "my_score.py: the file is not what it was when the run began" in ended.stderr
    loaded = run(["regard", "translate", "runs/mine", "--extend", str(tmp_path / "my_score.py")], folder)
    assert loaded.returncode == 0 and "is not as it was" in loaded.stderr


def test_from_python(folder: Path, done):
    code = """
import torch, regard
regard.extend("my_score.py")
model = regard.load("runs/mine")
print(model.translate(["a b"]))
from my_score import Sharpened
x = torch.randn(1, 2, 5, 4)
print(regard.attend(x, x, x, score=Sharpened().build(2, 4, 4)).shape)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=small_run.environment())
    assert ended.returncode == 0, ended.stderr
    assert "torch.Size([1, 2, 5, 4])" in ended.stdout


def test_the_other_kinds_of_the_page(folder: Path, tmp_path: Path):
    recipe = (folder / "my_recipe.toml").read_text().replace("200", "4").replace("evaluate_every = 100", "evaluate_every = 2")
    recipe = re.sub(r"train = \[.*", 'train = [{ kind = "counting", most = 30 }]', recipe, count=1)
    recipe = re.sub(r"heads = 2, feed", 'heads = 2, own = { pattern = [{ kind = "ring", step = 2 }], bias = "fading" }, feed', recipe)
    recipe = recipe.replace("d_model = 32", 'd_model = 32\nembedding = { positions = "parity" }')
    (folder / "all.toml").write_text(recipe)
    laws = run(["regard", "laws", "my_kinds.py"], folder)
    assert laws.returncode == 0 and "Ring(step=3) (pattern)" in laws.stdout, laws.stdout
    both = ["--extend", "my_kinds.py", "--extend", "my_score.py"]
    ended = run(["regard", "train", "all.toml", *both, "--out", "runs/all"], folder)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((folder / "runs/all/report.json").read_text())["data"]["kept"] == 30


def test_two_files_with_one_kind_are_told_apart(folder: Path, tmp_path: Path):
    (tmp_path / "other.py").write_text((folder / "my_score.py").read_text())
    ended = run(["regard", "plan", "my_recipe.toml", "--extend", "my_score.py", "--extend", str(tmp_path / "other.py")], folder)
    assert ended.returncode == 2 and "another file brings the kind sharpened too" in ended.stderr


def test_a_kind_of_the_packages_own_name_is_refused(folder: Path, tmp_path: Path):
    (tmp_path / "mine.py").write_text((folder / "my_score.py").read_text().replace('"sharpened"', '"cosine"'))
    ended = run(["regard", "plan", "my_recipe.toml", "--extend", str(tmp_path / "mine.py")], folder)
    assert ended.returncode == 2 and "has a kind cosine of its own; give yours another name" in ended.stderr


def test_what_is_loaded_here_without_the_file(folder: Path, done):
    with pytest.raises(Exception, match=r"give --extend my_score\.py"):
        load_model(folder / "runs/mine")
    with pytest.raises(Exception, match="no kind"):
        load(Run, folder / "runs/mine/run.toml")
