from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from zenlake.cli.check_config import check_config

app = typer.Typer()
app.command()(check_config)
runner = CliRunner()


def test_a_good_file_is_summed_up(tmp_path: Path) -> None:
    file = tmp_path / "node.json5"
    file.write_text(
        "{mode: 'router', transport: {link: {tx: {threads: 2}}}, connect: {endpoints:"
        " ['tcp/a:1', {strategy: 'allOf', locators: ['tcp/b:1', 'udp/b:2']}]}}"
    )
    result = runner.invoke(app, [str(file)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{file}: OK",
        "mode      router",
        "listen    tcp/[::]:7447",
        "connect   tcp/a:1, allOf(tcp/b:1, udp/b:2)",
        "idle      transport/link/tx/threads (accepted, not honoured yet)",
    ]


def test_stdin_is_read_for_a_dash() -> None:
    result = runner.invoke(app, ["-", "--json"], input="{mode: 'client'}")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "ok": True,
        "file": "-",
        "mode": "client",
        "listen": [],
        "connect": [],
        "not_honoured": [],
        "warnings": [],
    }


def test_a_subject_that_no_policy_names_is_warned_of() -> None:
    text = """{access_control: {enabled: true, default_permission: "allow",
        rules: [{id: "safe", permission: "deny", messages: ["put"], key_exprs: ["secret/**"]},
                {id: "idle", permission: "deny", messages: ["put"], key_exprs: ["x"]}],
        subjects: [{id: "guests", usernames: ["eve"]}, {id: "all"}],
        policies: [{rules: ["safe"], subjects: ["guests"]}]}}"""
    result = runner.invoke(app, ["-"], input=text)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        "warning   access_control/rules/1: no policy names the rule 'idle': it has no effect;"
        " name it in a policy, or remove it",
        "warning   access_control/subjects/1: no policy names the subject 'all': whoever it matches"
        " is allowed everything, whatever is denied to other subjects that match, because one that"
        " allows is enough; name it in a policy, or remove it",
    ]
    told = json.loads(runner.invoke(app, ["-", "--json"], input=text).stdout)["warnings"]
    assert [one["path"] for one in told] == ["access_control/rules/1", "access_control/subjects/1"]
    closed = runner.invoke(app, ["-"], input=text.replace('"allow"', '"deny"'))
    assert "'all': it allows nothing to anybody" in closed.stdout
    off = runner.invoke(app, ["-"], input=text.replace("enabled: true", "enabled: false"))
    assert "warning" not in off.stdout
    wrong = runner.invoke(app, ["-"], input=text.replace('["guests"]', '["ghosts"]'))
    assert wrong.exit_code == 1
    assert "'ghosts' is the id of none of the subjects" in wrong.stderr


def test_all_problems_of_a_file_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "node.json5"
    file.write_text("{\n  mod: 'router',\n  id: 5,\n}")
    result = runner.invoke(app, [str(file)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"{file}:2:3: mod: unknown key; did you mean 'mode'?",
        f"{file}:3:7: id: expected a Zenoh id (1 to 32 lower-case hexadecimal digits), or null,"
        " got 5",
    ]


def test_problems_are_listed_for_programs_too() -> None:
    result = runner.invoke(app, ["-", "--json"], input=b"{mode: '\xff'}")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "ok": False,
        "file": "<stdin>",
        "errors": [{"path": "", "message": "byte 0xff is not UTF-8 text", "line": 1, "column": 9}],
        "more": 0,
    }


def test_a_long_list_ends_with_a_count() -> None:
    text = "{" + ",".join(f"k{number}: 1" for number in range(130)) + "}"
    result = runner.invoke(app, ["-"], input=text)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[100:] == ["and 30 more"]


def test_files_that_the_configuration_names_must_be_there(tmp_path: Path) -> None:
    there = tmp_path / "users.txt"
    there.write_text("ann:secret")
    gone = tmp_path / "gone.pem"
    file = tmp_path / "node.json5"
    named = {
        "transport": {
            "link": {"tls": {"root_ca_certificate": str(gone)}},
            "auth": {"usrpwd": {"dictionary_file": str(there)}},
        },
        "listen": {"endpoints": [f"tls/[::]:7447#listen_certificate_file={gone}"]},
    }
    file.write_text(json.dumps(named))
    result = runner.invoke(app, [str(file)])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"{file}: transport/link/tls/root_ca_certificate: {gone}: No such file or directory",
        f"{file}: listen/endpoints: tls/[::]:7447#listen_certificate_file: {gone}: No such file or"
        " directory",
    ]


def test_a_plugin_that_is_required_and_not_there_is_told() -> None:
    text = "{plugins: {dds: {__required__: true}, other: {__required__: false}}}"
    result = runner.invoke(app, ["-"], input=text)
    assert result.exit_code == 1
    assert result.stderr == (
        "-: plugins/dds/__required__: zenlake has no plugin 'dds'; set it to false to start "
        "without it\n"
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "none.json5"
    result = runner.invoke(app, [str(file)])
    assert result.exit_code == 1
    assert result.stderr == f"{file}: cannot be read: No such file or directory\n"
