"""Who may be let in: passwords, files with secrets, and roles that must be proven."""

from __future__ import annotations

from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.waiting import until
from zenlake.transport.auth import read_dictionary


def test_an_empty_password_is_refused() -> None:
    with pytest.raises(ValueError, match="user 'anna' has an empty password"):
        read_dictionary("bob:secret\nanna:\n")


def test_a_file_of_passwords_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("anna:secret\n")
    users.chmod(0o644)
    settings = {"transport__auth__usrpwd__dictionary_file": f'"{users}"'}
    with pytest.raises(zenlake.ZError, match=r"everybody on this machine can read .*chmod 600"):
        listening(**settings).__enter__()
    users.chmod(0o600)
    with listening(**settings):
        pass


def test_a_role_that_must_be_proven_is_not_had_for_the_asking() -> None:
    with listening(transport__auth__roles__peer="[]", mode='"router"') as strict:
        with connected(strict, mode='"client"'):
            pass
        incidents = strict.runtime.node.incidents
        # A peer opens whether or not it is let in.
        with connected(strict, mode='"peer"', scouting__delay="0"):
            until(lambda: incidents.counts["login"] > 0)
            assert strict.runtime.neighbours() == []
        assert any("claims a role" in incident.reason for incident in incidents.newest())


def test_guesses_are_slowed_down_and_the_user_is_named(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("anna:secret\n")
    users.chmod(0o600)
    guess = {
        "transport__auth__usrpwd__user": '"anna"',
        "transport__auth__usrpwd__password": '"guessed"',
    }
    with listening(transport__auth__usrpwd__dictionary_file=f'"{users}"') as strict:
        node = strict.runtime.node
        with connected(
            strict,
            mode='"peer"',
            scouting__delay="0",
            connect__retry__period_init_ms="20",
            connect__retry__period_max_ms="20",
            **guess,
        ):
            until(lambda: bool(node.brake.waiting(node.moment())))
        newest = node.incidents.newest()
        assert any(incident.user == "anna" for incident in newest)
