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
        ("count", 2.5, "thing: option count=2.5 is not a whole number; default is 3"),
        ("count", "many", "thing: option count=many is not a whole number; default is 3"),
        ("count", None, "thing: option count=None is not a whole number; default is 3"),
        ("count", 0, "thing: option count=0 must be at least 1"),
        ("count", 11, "thing: option count=11 must be at most 10"),
        ("count", "1e999", "thing: option count=1e999 is not a whole number; default is 3"),
        ("share", "half", "thing: option share=half is not a number; default is 0.5"),
        ("share", "nan", "thing: option share=nan is not a number; default is 0.5"),
        ("share", 1.5, "thing: option share=1.5 must be at most 1"),
        ("loud", "perhaps", "thing: option loud=perhaps is not true or false; default is False"),
        ("word", "c", "thing: option word=c is not one of a, b"),
        ("bytes", "big", "'big' is not a size; expected a size such as 256MiB or 10GB"),
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
    assert str(none.value) == "lrm takes no options; 'decay' was given"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("tree(threshold=0)", "tree: option threshold=0 must be at least 1"),
        ("tree(threshold=101)", "tree: option threshold=101 must be at most 100"),
        ("tree(threshold=a)", "tree: option threshold=a is not a whole number; default is 51"),
        ("tree(threshold)", "cannot read 'threshold' in 'tree(threshold)'; expected option=value"),
        (
            "tree(threshold=)",
            "cannot read 'threshold=' in 'tree(threshold=)'; expected option=value",
        ),
        ("tree(=3)", "cannot read '=3' in 'tree(=3)'; expected option=value"),
        (
            "tree(threshold=3, threshold=4)",
            "option 'threshold' is given twice in 'tree(threshold=3, threshold=4)'",
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
