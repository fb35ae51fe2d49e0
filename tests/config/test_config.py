from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path

import pytest

from zenlake.config import Config, ConfigWarning, InvalidConfig, Problem
from zenlake.errors import ConfigError, ZError


def test_a_new_configuration_shows_what_is_still_open_as_null() -> None:
    config = Config()
    assert config.get_json("mode") == "null"
    assert config.mode == "peer"
    assert json.loads(config.get_json("transport/link/tx/queue/batching")) == {
        "enabled": True,
        "time_limit": 1,
    }
    assert repr(config) == "Config()"


def test_the_mode_decides_what_holds() -> None:
    config = Config()
    config.insert_json5("mode", '"router"')
    assert config.resolved.mode == "router"
    assert config.resolved.timestamping.enabled is True
    assert config.for_mode("client").timestamping.enabled is False


def test_an_object_takes_the_place_of_a_section_and_a_key_that_of_a_key() -> None:
    config = Config.from_json5("{plugins: {rest: {http_port: 1, max_body: 5}}}")
    rest = Config.from_json5("{plugins: {rest: {http_port: 3}}}").get_json("plugins/rest")
    config.insert_json5("plugins/rest/http_port", "2")
    assert json.loads(config.get_json("plugins/rest"))["max_body"] == 5
    config.insert_json5("plugins/rest", "{http_port: 3}")
    assert config.get_json("plugins/rest") == rest


def test_unknown_keys_cannot_be_read_either() -> None:
    with pytest.raises(ZError, match="did you mean 'mode'"):
        Config().get_json("mod")


def test_a_value_must_be_text() -> None:
    with pytest.raises(TypeError, match="3 is no JSON5 text; write '3'"):
        Config().insert_json5("mode", 3)  # type: ignore[arg-type]


def test_the_text_of_a_configuration_reads_back() -> None:
    config = Config()
    config.insert_json5("mode", '"client"')
    assert Config.from_json5(str(config)) == config
    assert Config.from_json5(str(config)) != Config()


def test_copies_do_not_share() -> None:
    config = Config()
    for other in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        other.insert_json5("mode", '"router"')
        assert config == Config()
        assert other != config


def test_files_are_read_by_their_extension(tmp_path: Path) -> None:
    for name in ("node.json5", "node.json"):
        path = tmp_path / name
        path.write_text("\ufeff{mode: 'router'}", encoding="utf-8")
        assert Config.from_file(path).mode == "router"
        assert Config.from_file(str(path)).mode == "router"
    for name in ("node.txt", "node"):
        (tmp_path / name).write_text("{}")
        with pytest.raises(ConfigError, match=r"name it \.json5, \.json or \.yaml"):
            Config.from_file(tmp_path / name)


def test_a_file_that_is_missing_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Config.from_file(tmp_path / "none.json5")
    with pytest.raises(ConfigError, match="cannot be read"):
        Config.from_file("a\0b.json5")
    path = tmp_path / "bad.json5"
    path.write_bytes(b"{\n  mode: '\xff'}")
    with pytest.raises(ConfigError, match=r"bad\.json5:2:10: byte 0xff is not UTF-8 text"):
        Config.from_file(path)


def test_bytes_without_a_file_are_read_too() -> None:
    assert Config.from_bytes(b"{mode: 'router'}", "<stdin>").mode == "router"
    with pytest.raises(ConfigError, match="<stdin>:1:2: mod: unknown key"):
        Config.from_bytes(b"{mod: 1}", "<stdin>")


def test_problems_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "node.json5"
    path.write_text("{\n mode: 1}")
    with pytest.raises(InvalidConfig) as caught:
        Config.from_file(path)
    assert caught.value.source == str(path)
    assert caught.value.problems == (
        Problem("mode", 'expected "router", "peer" or "client", or null, got 1', 2, 8),
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.problems, str(again)) == (caught.value.problems, str(caught.value))


def test_the_environment_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "node.json5"
    path.write_text("{mode: 'client'}")
    monkeypatch.setenv(Config.DEFAULT_CONFIG_PATH_ENV, str(path))
    assert Config.from_env().mode == "client"
    monkeypatch.delenv("ZENOH_CONFIG")
    with pytest.raises(ConfigError, match="ZENOH_CONFIG is not set"):
        Config.from_env()


def test_a_key_without_effect_warns_once() -> None:
    config = Config()
    with pytest.warns(ConfigWarning, match="without effect yet: transport/link/tx/threads") as seen:
        config.insert_json5("transport/link/tx/threads", "3")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.insert_json5("transport/link/tx/threads", "4")
        config.insert_json5("mode", '"router"')


def test_a_whole_configuration_warns_of_a_subject_without_a_policy() -> None:
    section = '{enabled: true, default_permission: "allow", subjects: [{id: "all"}]}'
    warned = "no policy names the subject 'all'"
    with pytest.warns(ConfigWarning, match=warned):
        Config.from_json5(f"{{access_control: {section}}}")
    with pytest.warns(ConfigWarning, match=warned):
        Config().insert_json5("access_control", section)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = Config()  # the policies may be written next
        config.insert_json5("access_control/enabled", "true")
        config.insert_json5("access_control/subjects", '[{id: "all"}]')


def test_writing_a_default_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = Config.from_json5("{transport: {link: {tx: {threads: 1}}}, plugins: {}}")
    assert config.get_json("transport/link/tx/threads") == "1"


def test_all_keys_without_effect_are_named_together() -> None:
    text = (
        "{plugins: {dds: {}, x: {}}, transport: {link: {tx: {threads: 3}}}, connect: {retry: {}}}"
    )
    with pytest.warns(ConfigWarning) as seen:
        config = Config.from_json5(text)
    assert [str(warning.message) for warning in seen] == [
        "accepted, but without effect yet: transport/link/tx/threads, plugins/dds, plugins/x"
    ]
    assert seen[0].filename == __file__
    assert config.not_honoured() == ("transport/link/tx/threads", "plugins/dds", "plugins/x")


@pytest.mark.filterwarnings("ignore::zenlake.config.ConfigWarning")
def test_secrets_stay_out_of_the_representation_and_of_messages() -> None:
    config = Config()
    config.insert_json5("transport/auth/usrpwd", '{user: "anna", password: "s3cret"}')
    config.insert_json5("transport/auth/pubkey/private_key_pem", '"s3cret"')
    config.insert_json5("transport/link/tls/connect_private_key_base64", '"s3cret"')
    config.insert_json5("plugins/db", '{url: "x", private: {a: "s3cret"}, api_token: "s3cret"}')
    config.insert_json5("connect/endpoints", '["tls/a:1#connect_private_key_base64=s3cret;b=1"]')
    assert "s3cret" not in repr(config)
    assert "anna" in repr(config)
    assert "b=1" in repr(config)
    # A program that asks for a secret gets it, as it does from Eclipse Zenoh.
    assert config.get_json("transport/auth/usrpwd/password") == '"s3cret"'
    with pytest.raises(InvalidConfig) as caught:
        config.insert_json5("transport/auth/usrpwd/password", '["s3cret"]')
    assert str(caught.value) == (
        "transport/auth/usrpwd/password: expected a text, or null (what was written is not shown)"
    )
