from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.programs import run_alone


@pytest.mark.parametrize("action", [("init",), ("issue", "robot-7")])
def test_certs_without_cryptography_name_the_extra_that_brings_it(
    action: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if action[0] == "issue":
        assert run_alone("certs", "init", "--data", str(tmp_path))[0] == 0
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    code, lines = run_alone("certs", *action, "--data", str(tmp_path))
    assert code == 1
    assert lines == [
        "zenlake: this needs cryptography, which is not installed: pip install 'zenlake[tls]'"
    ]
    assert not (tmp_path / "certs" / "robot-7.key").exists()


def test_a_data_folder_that_it_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert run_alone("certs", "init", "--data", str(tmp_path / "plant"))[0] == 0
    for folder in (tmp_path / "plant", tmp_path / "plant" / "certs"):
        assert folder.stat().st_mode & 0o077 == 0


def test_an_authority_is_made_once_and_signs_for_others(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    code, lines = run_alone("certs", "init", "--data", str(tmp_path))
    assert code == 0
    assert lines[:2] == [str(folder / "authority.pem"), str(folder / "authority.key")]
    assert (folder / "authority.key").stat().st_mode & 0o077 == 0
    code, lines = run_alone("certs", "init", "--data", str(tmp_path))
    assert code == 2
    assert lines == [
        f"zenlake: there is an authority in {folder} already; "
        "`zenlake certs issue NAME` signs with it"
    ]
    code, lines = run_alone("certs", "issue", "robot-7", "--data", str(tmp_path))
    assert code == 0
    assert lines == [str(folder / "robot-7.pem"), str(folder / "robot-7.key")]
