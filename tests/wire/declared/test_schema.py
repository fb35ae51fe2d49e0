"""The vocabulary of declarations refuses what could not be said on the wire."""

from __future__ import annotations

import pytest

from zenlake import testing
from zenlake.wire.declared.schema import (
    REQUIRED,
    Condition,
    FlagByte,
    Int,
    MessageSpec,
    ProtocolPage,
    ext,
    flag,
    flag_byte,
    many,
    rest,
    struct,
    text,
    u8,
    unit,
    vle,
    z16,
    z32,
)

SPECS = list(testing.specs("1.x"))


def declare(**fields: object) -> MessageSpec:
    page = ProtocolPage("test", "Test", "1.x")
    page.message(0x01, "N M Z")(type("Thing", (), {"__doc__": "A thing.", **fields}))
    return page.find("Thing")


def test_the_attributes_of_a_class_are_the_fields_in_order() -> None:
    spec = declare(scope=z16(), suffix=text(16).when("N"), qos=ext(0x21, vle(8), default=5))
    assert [field.name for field in spec.fields] == ["scope", "suffix", "qos"]
    assert [field.name for field in spec.plain] == ["scope", "suffix"]
    assert [field.name for field in spec.extensions] == ["qos"]
    assert spec.doc == "A thing."


def test_a_field_is_required_unless_something_says_when_it_is_there() -> None:
    assert z16().default is REQUIRED
    assert z16().when("N").default == 0
    assert z32().when("N", default=None).default is None
    assert text(8).when("N").default == ""
    assert many(z16()).when("N").default == ()
    assert struct("Other").when("N").default is None
    assert flag("N").default is False


def test_an_extension_has_a_default_that_means_absent() -> None:
    assert ext(0x01, unit()).default is False
    assert ext(0x21, vle(8), default=5).default == 5
    assert ext(0x42, rest()).default is None  # an empty one is there
    assert ext(0x51, many(z32(), fixed=16)).default is None


@pytest.mark.parametrize(
    ("header", "body"),
    [(0x01, vle(8)), (0x21, rest()), (0x41, unit()), (0x61, unit()), (0x42, u8())],
)
def test_an_extension_body_must_fit_its_encoding(header: int, body: object) -> None:
    with pytest.raises(ValueError, match=f"extension 0x{header:02x}"):
        ext(header, body)  # type: ignore[arg-type]


def test_a_condition_must_name_a_flag_of_the_message() -> None:
    with pytest.raises(ValueError, match=r"Thing\.suffix: no flag 'Q'"):
        declare(suffix=text(16).when("Q"))


def test_a_byte_of_flags_brings_letters_of_its_own() -> None:
    spec = declare(options=flag_byte("K S Q"), scope=z16().when("Q"))
    assert spec.plain[1].conditions == (Condition(flag="Q"),)


def test_the_header_bits_are_named_from_bit_five() -> None:
    spec = declare()
    assert [spec.bit(letter) for letter in "NMZQ"] == [0x20, 0x40, 0x80, 0]
    assert spec.extensible


def test_conditions_add_up() -> None:
    field = z16().unless("mode", 0).when("R")
    assert field.conditions == (
        Condition(name="mode", values=(0,), negated=True),
        Condition(flag="R"),
    )
    assert z16().given("shm").conditions == (Condition(name="shm"),)


def test_a_page_finds_what_its_imports_declare() -> None:
    inner, outer = ProtocolPage("inner", "Inner", "1.x"), ProtocolPage("outer", "Outer", "1.x")
    outer.imports = (inner,)
    inner.structure(type("Point", (), {"x": u8()}))
    assert outer.find("Point").id == -1
    assert outer.closure() == [outer, inner]
    with pytest.raises(KeyError):
        inner.find("Line")


# What must hold for the declarations that we ship.


@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
def test_a_declared_message_is_explained_and_unambiguous(spec: MessageSpec) -> None:
    assert spec.doc
    headers = [field.extension for field in spec.extensions]
    assert len(headers) == len(set(headers))
    assert all(0 < header < 0x80 for header in headers)
    assert spec.extensible or not headers
    names = [field.name for field in spec.fields]
    assert len(names) == len(set(names))
    for field in spec.fields:
        if isinstance(field.kind, Int) and field.kind.legal and field.default is not REQUIRED:
            assert field.default is None or field.default in (0, *field.kind.legal)
        if isinstance(field.kind, FlagByte):
            assert len(field.kind.letters) <= 8


@pytest.mark.parametrize("page", testing.pages("1.x"), ids=lambda page: page.name)
def test_no_two_messages_of_a_page_share_a_header(page: ProtocolPage) -> None:
    headers = [(spec.id, spec.fixed) for spec in page.specs.values() if spec.id >= 0]
    assert len(headers) == len(set(headers))
    assert all(0 <= id < 0x20 for id, _ in headers)


def test_transport_and_network_messages_share_one_id_space() -> None:
    ids = {
        page.name: {spec.id for spec in page.specs.values() if spec.id >= 0}
        for page in testing.pages("1.x")
    }
    assert ids["transport"] == set(range(0x08))
    assert ids["network"] == set(range(0x19, 0x20))


EXTENSIONS = {
    "InitSyn": "01 21 42 43 44 05 06 27 48",
    "InitAck": "01 21 42 43 44 05 06 27 48",
    "OpenSyn": "01 42 43 44 05 06 27",
    "OpenAck": "01 42 43 04 05 06 27",
    "Frame": "31",
    "Fragment": "31 02 03",
    "Join": "51 52 27",
    "TransportOam": "31",
    "Push": "21 42 33 47",
    "Request": "21 42 34 25 26 33 47",
    "Response": "21 42 43 47",
    "ResponseFinal": "21 42",
    "Declare": "21 42 33",
    "Interest": "21 42 33",
    "Oam": "21 42",
    # Zenlake's own, which others pass over: its mandatory bit is clear.
    "DeclareSubscriber": "4e",
    "DeclareQueryable": "21",
    "UndeclareSubscriber": "5f",
    "UndeclareQueryable": "5f",
    "UndeclareToken": "5f",
    "Put": "41 12 43",
    "Del": "41 42",
    "Query": "41 04 43 45",
    "Err": "41 12",
}


@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
def test_the_extensions_of_a_message_are_those_of_the_protocol(spec: MessageSpec) -> None:
    written = " ".join(f"{field.extension:02x}" for field in spec.extensions)
    assert written == EXTENSIONS.get(spec.name, "")
