"""The ledger of reality: every row within its tolerance stays so, and no row changes its role."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.machine import preset_names
from tidegate.validate.ledger import Row, points_of, saved_cards, saved_rows, validate
from tidegate.validate.page import page_of
from tidegate.validate.points import Point, Quantity, Role, load_points

# Test rows that are out of tolerance, with their causes in docs/validation.md
FAILURES = {"faults, 2DC, 50 % oversubscribed"}
QUICK = ("a100-40-pcie4", "gtx1080-pcie3", "t4-pcie3")
LONG = ("rtx3090-pcie4", "rtx5070ti-pcie5", "rtx5090-pcie5")


def check_card(card: str) -> None:
    saved = {row["point"]: row for row in saved_rows() if row["machine"] == card}
    rows = validate([card], cache=False).rows
    assert {row.point.name for row in rows} == set(saved)
    for row in rows:
        before = saved[row.point.name]
        assert row.point.role == before["role"], row.point.name
        if row.ratio is not None:
            assert row.ratio == pytest.approx(float(before["ratio"]), rel=2e-3), row.point.name
        assert row.within == (before["within"] == "true"), row.point.name


@pytest.mark.parametrize("card", QUICK)
def test_a_quick_card_is_as_the_saved_ledger_says(card: str) -> None:
    check_card(card)


@pytest.mark.slow
@pytest.mark.parametrize("card", LONG)
def test_a_long_card_is_as_the_saved_ledger_says(card: str) -> None:
    check_card(card)


def test_the_saved_ledger_has_every_point_in_its_role() -> None:
    saved = {(row["set"], row["point"]): row["role"] for row in saved_rows()}
    assert saved == {(p.source.set, p.name): p.role.value for p in load_points()}


def test_failures_are_those_that_are_explained() -> None:
    failures = {r["point"] for r in saved_rows() if r["role"] == "test" and r["within"] != "true"}
    assert failures == FAILURES


@pytest.mark.parametrize("card", [*QUICK, *LONG])
def test_each_card_is_as_good_as_it_must_be(card: str) -> None:
    found = saved_cards()[card]
    assert found.mean <= 1.15
    assert found.within >= 0.8 * found.rows
    worst = [
        max(float(row["ratio"]), 1 / float(row["ratio"]))
        for row in saved_rows()
        if row["machine"] == card
        and row["role"] == "test"
        and row["quantity"] == "time"
        and row["point"] not in FAILURES
    ]
    assert max(worst, default=1.0) <= 1.6


def test_every_card_is_a_preset() -> None:
    assert {point.source.machine for point in load_points()} <= set(preset_names())


def a_point(quantity: Quantity, measured: float | tuple[int, ...]) -> Point:
    return dataclasses.replace(load_points()[0], quantity=quantity, measured=measured)


@pytest.mark.parametrize(
    ("quantity", "over", "ratio", "within"),
    [
        (Quantity.TIME, False, 1.25, True),
        (Quantity.TIME, False, 1.26, False),
        (Quantity.TIME, False, 0.74, False),
        (Quantity.TIME, True, 0.66, True),
        (Quantity.TIME, True, 1.36, False),
        (Quantity.BYTES, True, 1.01, True),
        (Quantity.BYTES, True, 1.02, False),
        (Quantity.FAULTS, False, 2.0, True),
        (Quantity.FAULTS, False, 0.49, False),
    ],
)
def test_a_row_is_judged_by_its_quantity(
    quantity: Quantity, over: bool, ratio: float, within: bool
) -> None:
    assert Row(a_point(quantity, 100.0), 100 * ratio, over).within is within


def test_moves_are_equal_or_not() -> None:
    point = a_point(Quantity.MOVES, (65536, 131072))
    assert Row(point, (65536, 131072), False).within
    assert not Row(point, (65536, 65536), False).within
    assert Row(point, (65536, 65536), False).ratio is None


def test_only_test_rows_count() -> None:
    found = validate(["gtx1080-pcie3"])
    (card,) = found.cards
    assert card.rows == sum(row.point.role is Role.TEST for row in found.rows) < len(found.rows)


def test_the_page_has_every_row_and_the_picture() -> None:
    found = validate(["t4-pcie3"])
    page = page_of(found)
    assert all(row.point.name in page for row in found.rows)
    assert page.count("<svg") == 1
    assert "None" not in page


def test_an_unknown_card_is_refused() -> None:
    with pytest.raises(TidegateError, match="rtx5090-pcie5"):
        points_of(["rtx5080"])


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert invoke(["validate", *map(str, arguments)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_the_verb_prints_a_table_and_writes_picture_and_page(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "picture.svg"
    given = ["--card", "t4-pcie3", "--out", str(page), "--plot", str(picture)]
    assert invoke(["validate", *given]) == 0
    said = capsys.readouterr().out
    assert "triad of 2^28 floats" in said
    assert "Test rows by card" in said
    assert page.read_text().startswith("<!doctype html>")
    assert "<svg" in picture.read_text()


def test_mistakes_are_one_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--workload is missing" in refused(capsys, tmp_path / "no.sqlite")
    assert "leave it out" in refused(capsys, "--workload", "triad")
    assert "leave it out" in refused(capsys, tmp_path / "x", "--card", "t4-pcie3")
    assert ".html" in refused(capsys, "--out", tmp_path / "page.pdf")
    assert "t4-pcie3" in refused(capsys, "--card", "t4")
    profile = [tmp_path / "no.sqlite", "--workload", "triad"]
    assert "--machine is missing" in refused(capsys, *profile)
    assert "no file" in refused(capsys, *profile, "--machine", "t4-pcie3")
