from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zenlake.cli.acl import Flow, Op
from zenlake.cli.app import application
from zenlake.routing.policy import FLOWS, KINDS

app = application(["acl"])
runner = CliRunner()

TEXT = """
{access_control: {
  enabled: true,
  default_permission: "deny",
  rules: [
    {id: "publish", permission: "allow", messages: ["put"], flows: ["ingress"],
     key_exprs: ["robot/**"]},
    {id: "hush", permission: "deny", messages: ["put"], key_exprs: ["robot/*/secret"]},
  ],
  subjects: [
    {id: "staff", usernames: ["ann", "bob"]},
    {id: "lab", interfaces: ["eth0"], link_protocols: ["tls"]},
    {id: "machine", zids: ["a1"], cert_common_names: ["arm"]},
  ],
  policies: [
    {id: "work", rules: ["publish"], subjects: ["staff", "machine"]},
    {rules: ["hush"], subjects: ["lab"]},
  ],
}}
"""


def explain(*arguments: str, text: str = TEXT) -> tuple[int, list[str]]:
    told = runner.invoke(app, ["acl", "explain", "--config", "-", *arguments], input=text)
    return told.exit_code, told.output.splitlines()


def test_the_rule_that_allows_is_printed() -> None:
    asked = ("--who", "username=ann", "--op", "put", "--key", "robot/1/pose", "--flow", "ingress")
    assert explain(*asked) == (
        0,
        [
            "ALLOW put on robot/1/pose, ingress: rule 'publish' allows it by robot/**,"
            " for subject 'staff', by policy 'work'"
        ],
    )


def test_both_flows_are_told_unless_one_is_asked_for() -> None:
    code, lines = explain("--who", "username=ann", "--op", "put", "--key", "robot/1/pose")
    assert code == 1
    assert [line.split(":")[0] for line in lines] == [
        "ALLOW put on robot/1/pose, ingress",
        "DENY put on robot/1/pose, egress",
    ]


def test_all_that_speak_are_printed_and_one_that_allows_is_enough() -> None:
    who = ("username=ann", "interface=eth0", "link_protocol=tls")
    told = [word for one in who for word in ("--who", one)]
    code, lines = explain(*told, "--op", "put", "--key", "robot/1/secret", "--flow", "ingress")
    assert code == 0
    assert lines == [
        "ALLOW put on robot/1/secret, ingress: rule 'publish' allows it by robot/**,"
        " for subject 'staff', by policy 'work'",
        "  also: rule 'hush' denies it by robot/*/secret, for subject 'lab', by policy '#2'",
    ]


def test_nobody_in_particular_gets_the_default() -> None:
    code, lines = explain("--op", "query", "--key", "a", "--flow", "egress")
    assert code == 1
    assert lines == [
        "DENY query on a, egress: no subject matches the neighbour; by default it is denied"
    ]


def test_programs_get_every_ground() -> None:
    told = runner.invoke(
        app,
        [
            *("acl", "explain", "--config", "-", "--json", "--op", "put", "--key", "robot/1/pose"),
            *("--who", "zid=a1", "--who", "cert_common_name=arm", "--flow", "ingress"),
        ],
        input=TEXT,
    )
    assert told.exit_code == 0
    ground = {
        "rule": "publish",
        "key_expr": "robot/**",
        "subject": "machine",
        "policy": "work",
    }
    assert json.loads(told.stdout) == {
        "enabled": True,
        "decisions": [
            {
                "flow": "ingress",
                "message": "put",
                "key": "robot/1/pose",
                "allowed": True,
                "why": "rule 'publish' allows it by robot/**, for subject 'machine',"
                " by policy 'work'",
                **ground,
                "grounds": [{"allowed": True, "subjects": ["machine"], **ground}],
            }
        ],
    }


def test_access_control_that_is_off_is_told() -> None:
    code, lines = explain("--op", "put", "--key", "a", text="{}")
    assert code == 0
    assert lines == ["ALLOW put on a: access control is not enabled (access_control/enabled)"]
    code, lines = explain("--op", "put", "--key", "a", "--json", text="{}")
    assert json.loads("\n".join(lines)) == {"enabled": False, "decisions": []}


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "router.json5"
    file.write_text(TEXT)
    told = runner.invoke(
        app,
        ["acl", "explain", "--config", str(file), "--op", "put", "--key", "a", "--flow", "ingress"],
    )
    assert told.exit_code == 1


def test_a_broken_configuration_is_no_denial() -> None:
    code, lines = explain("--op", "put", "--key", "a", text="{access_control: {enabled: 1}}")
    assert code == 2
    assert "access_control" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--op", "put", "--key", "a//b"), "a//b"),
        (("--op", "shout", "--key", "a"), "shout"),
        (("--op", "put", "--key", "a", "--who", "ann"), "username=…"),
        (("--op", "put", "--key", "a", "--who", "user=ann"), "username=…"),
        (("--op", "put", "--key", "a", "--who", "username="), "username=…"),
        (("--op", "put", "--key", "a", "--who", "zid=XY"), "XY"),
        (
            ("--op", "put", "--key", "a", "--who", "username=a", "--who", "username=b"),
            "one username",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(arguments: tuple[str, ...], word: str) -> None:
    code, lines = explain(*arguments)
    assert code == 2
    assert word in "".join(lines)


def test_the_command_knows_every_kind_and_flow() -> None:
    assert {op.value for op in Op} == set(KINDS)
    assert {flow.value for flow in Flow} == set(FLOWS)
