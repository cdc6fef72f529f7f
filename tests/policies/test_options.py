"""Options are typed, bounded and named; what is not declared is refused with the nearest name."""

from __future__ import annotations

import pytest

from tidegate import units
from tidegate.errors import TidegateError, UnknownName
from tidegate.options import Configurable, Option, parse_spec
from tidegate.policies.registries import eviction, prefetch


class Everything(Configurable):
    name = "thing"
    count = Option(3, "how many", least=1, most=10)
    share = Option(0.5, "how much", least=0, most=1)
    loud = Option(False, "say it")
    word = Option("a", "which", choices=("a", "b"))
    bytes = Option(4096, "how large", parse=units.size)


@pytest.mark.parametrize(
    ("option", "given", "value"),
    [
        ("count", 4, 4),
        ("count", "4", 4),
        ("count", 4.0, 4),
        ("share", 1, 1.0),
        ("share", "0.25", 0.25),
        ("share", "1e-3", 0.001),
        ("loud", True, True),
        ("loud", "yes", True),
        ("loud", "off", False),
        ("loud", 0, False),
        ("word", "b", "b"),
        ("bytes", "64KiB", 65536),
        ("bytes", 512, 512),
    ],
)
def test_a_value_takes_its_options_type(option, given, value):
    got = getattr(Everything(**{option: given}), option)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("option", "given", "complaint"),
    [
        ("count", 2.5, "thing: count must be a whole number, got 2.5; the default is 3"),
        ("count", "many", "thing: count must be a whole number, got many; the default is 3"),
        ("count", None, "thing: count must be a whole number, got None; the default is 3"),
        ("count", 0, "thing: count must be at least 1, got 0; the default is 3"),
        ("count", 11, "thing: count must be at most 10, got 11; the default is 3"),
        ("count", "1e999", "thing: count must be a whole number, got 1e999; the default is 3"),
        ("share", "half", "thing: share must be a number, got half; the default is 0.5"),
        ("share", "nan", "thing: share must be a number, got nan; the default is 0.5"),
        ("share", 1.5, "thing: share must be at most 1, got 1.5; the default is 0.5"),
        ("loud", "perhaps", "thing: loud must be true or false, got perhaps; the default is False"),
        ("word", "c", "thing: word must be one of a, b, got c; the default is a"),
        ("bytes", "big", "size must be a number and a unit such as 256MiB or 10GB, got 'big'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_one_line(option, given, complaint):
    with pytest.raises(TidegateError) as error:
        Everything(**{option: given})
    assert str(error.value) == complaint


def test_defaults_stay_what_they_are():
    assert Everything().settings() == {
        "count": 3,
        "share": 0.5,
        "loud": False,
        "word": "a",
        "bytes": 4096,
    }
    assert Everything(count=5).settings()["count"] == 5
    assert Everything().count == 3


def test_a_subclass_has_its_bases_options():
    class More(Everything):
        extra = Option(1, "more")

    assert More(extra=2, count=4).settings()["extra"] == 2
    assert list(More.options()) == ["count", "share", "loud", "word", "bytes", "extra"]


def test_an_unknown_option_is_refused_with_the_nearest():
    with pytest.raises(UnknownName) as error:
        prefetch.make("tree(treshold=60)")
    assert (
        str(error.value)
        == "unknown option of tree 'treshold'; did you mean 'threshold'? Known: threshold"
    )
    with pytest.raises(TidegateError) as none:
        eviction.make("lrm(decay=0.5)")
    assert str(none.value) == "lrm takes no options, got 'decay'; leave it out"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("tree(threshold=0)", "tree: threshold must be at least 1, got 0; the default is 51"),
        ("tree(threshold=101)", "tree: threshold must be at most 100, got 101; the default is 51"),
        ("tree(threshold=a)", "tree: threshold must be a whole number, got a; the default is 51"),
        ("tree(threshold)", "cannot read 'threshold' in 'tree(threshold)'; expected option=value"),
        (
            "tree(threshold=)",
            "cannot read 'threshold=' in 'tree(threshold=)'; expected option=value",
        ),
        ("tree(=3)", "cannot read '=3' in 'tree(=3)'; expected option=value"),
        (
            "tree(threshold=3, threshold=4)",
            "option 'threshold' is given twice in 'tree(threshold=3, threshold=4)'; give it once",
        ),
        (
            "tree(threshold=3",
            "cannot read 'tree(threshold=3'; expected name or name(option=value, …)",
        ),
        ("", "cannot read ''; expected name or name(option=value, …)"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused_in_one_line(spec, complaint):
    with pytest.raises(TidegateError) as error:
        prefetch.make(spec)
    assert str(error.value) == complaint


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("lrm", ("lrm", {})),
        (" lrm ( ) ", ("lrm", {})),
        (
            "x(a=1, b=2.5, c=yes, d=64KiB, e='q')",
            ("x", {"a": 1, "b": 2.5, "c": "yes", "d": "64KiB", "e": "q"}),
        ),
        ("dir/mine.py:Mine(lag=4)", ("dir/mine.py:Mine", {"lag": 4})),
    ],
)
def test_specs_as_people_write_them(text, read):
    assert parse_spec(text) == read


def test_an_unknown_policy_is_refused_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"unknown eviction 'lrmm'; did you mean 'lrm'\? Known: .*belady"
    ):
        eviction.make("lrmm")
    assert eviction.find("LRM") is eviction.find("lrm")
