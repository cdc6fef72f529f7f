"""Typed options, and the text people write them in."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.options import Configurable, Option, parse_spec


class Knobs(Configurable):
    name = "knobs"
    depth = Option(3, "how deep", least=1, most=9)
    decay = Option(0.5, "how fast")
    loud = Option(False, "say it aloud")
    mode = Option("slow", "which way", choices=("slow", "fast"))
    room = Option(units.size("1MiB"), "how much", parse=units.size, least=1)


class MoreKnobs(Knobs):
    name = "more-knobs"
    depth = Option(5, "deeper")
    extra = Option(1, "one more")


def test_defaults():
    assert Knobs().settings() == {
        "depth": 3,
        "decay": 0.5,
        "loud": False,
        "mode": "slow",
        "room": 2**20,
    }


def test_what_is_given_is_in_force():
    given = {"depth": 4, "decay": 0.25, "loud": True, "mode": "fast", "room": 4096}
    assert Knobs(**given).settings() == given
    assert Knobs(depth=4).depth == 4
    assert Knobs().depth == 3  # others are not touched


@pytest.mark.parametrize(
    ("option", "given", "meant"),
    [
        ("depth", "4", 4),
        ("depth", 4.0, 4),
        ("decay", 1, 1.0),
        ("decay", "1e-3", 0.001),
        ("loud", "yes", True),
        ("loud", "off", False),
        ("loud", 1, True),
        ("loud", "False", False),
        ("room", "64KiB", 65536),
        ("room", 10, 10),
        ("mode", "fast", "fast"),
    ],
)
def test_texts_are_understood(option, given, meant):
    value = getattr(Knobs(**{option: given}), option)
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("depth", 0, "depth must be at least 1, got 0"),
        ("depth", 10, "depth must be at most 9, got 10"),
        ("depth", 1.5, "whole number"),
        ("depth", "deep", "depth must be a whole number, got deep; the default is 3"),
        ("depth", None, "whole number"),
        ("depth", [1], "whole number"),
        ("depth", float("nan"), "whole number"),
        ("depth", float("inf"), "whole number"),
        ("decay", "x", "decay must be a number, got"),
        ("decay", float("nan"), "decay must be a number, got"),
        ("decay", float("-inf"), "decay must be a number, got"),
        ("loud", "maybe", "true or false"),
        ("mode", "fats", "mode must be one of slow, fast, got fats"),
        ("room", "much", "size must be .*, got 'much'"),
        ("room", 0, "at least 1"),
        ("room", [1], r"\[1\]"),
    ],
)
def test_what_cannot_be_is_refused(option, given, said):
    with pytest.raises(TidegateError, match=said):
        Knobs(**{option: given})


def test_unknown_options_are_refused_with_the_nearest():
    with pytest.raises(TidegateError, match="unknown option of knobs 'dept'; did you mean 'depth'"):
        Knobs(dept=1)
    with pytest.raises(TidegateError, match="plain takes no options, got 'dept'"):
        type("plain", (Configurable,), {})(dept=1)


def test_options_are_inherited_and_replaced():
    assert list(MoreKnobs.options()) == ["depth", "decay", "loud", "mode", "room", "extra"]
    assert MoreKnobs().depth == 5
    assert MoreKnobs(depth=100).depth == 100  # the new declaration has no bound
    assert Knobs.options()["depth"].default == 3


def test_an_option_of_the_class_is_its_declaration():
    assert isinstance(Knobs.depth, Option)
    assert (Knobs.depth.help, Knobs.depth.name) == ("how deep", "depth")


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("lrm", "lrm", {}),
        (" lrm ", "lrm", {}),
        ("lrm()", "lrm", {}),
        ("lfu(decay=0.5, bins=16)", "lfu", {"decay": 0.5, "bins": 16}),
        ("cyclic(bytes=1GiB)", "cyclic", {"bytes": "1GiB"}),
        ("f(a=True, b=yes, c='x y')", "f", {"a": True, "b": "yes", "c": "x y"}),
        ("dir/mine.py:Policy(depth=3)", "dir/mine.py:Policy", {"depth": 3}),
        ("f(a=1,)", "f", {"a": 1}),
        ("f(a=x=y)", "f", {"a": "x=y"}),
        ("f(a=50%)", "f", {"a": "50%"}),
        ("f(a=-1)", "f", {"a": -1}),
        ("f(a=a/b.txt)", "f", {"a": "a/b.txt"}),
    ],
)
def test_specs(text, name, options):
    assert parse_spec(text) == (name, options)


@pytest.mark.parametrize(
    "text",
    ["", "()", "f(", "f)", "f(a=1", "f(a)", "f(a=)", "f(=1)", "f(a b=1)", "f(1=2)", "f(a=1) g"],
)
def test_what_is_no_spec(text):
    with pytest.raises(TidegateError, match="cannot read"):
        parse_spec(text)


def test_the_same_option_twice():
    with pytest.raises(TidegateError, match="'a' is given twice"):
        parse_spec("f(a=1, a=1)")


@given(st.text("ab=(),. \n\"'1[", max_size=20))
def test_no_text_breaks_the_reader(text):
    with suppress(TidegateError):
        name, options = parse_spec(text)
        assert name in text
        assert all(key.isidentifier() for key in options)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.integers() | st.booleans(), max_size=4
    )
)
def test_what_is_written_is_read(options):
    text = ", ".join(f"{k}={v}" for k, v in options.items())
    assert parse_spec(f"name({text})") == ("name", options)
