"""Prometheus' text: numbers in full, labels that cannot end early."""

from __future__ import annotations

from searchparty.http_server.prometheus import counter


def test_a_large_counter_keeps_every_digit_and_a_sum_of_money_its_fraction() -> None:
    lines = list(counter("tokens_total", "Tokens.", ("role",), {("planner",): 12_345_678_901, ("qds",): 0.000125}))
    assert lines[2:] == [
        'searchparty_tokens_total{role="planner"} 12345678901',
        'searchparty_tokens_total{role="qds"} 0.000125',
    ]


def test_a_label_cannot_end_its_line_or_its_quotes() -> None:
    (line,) = list(counter("x_total", "X.", ("kind",), {('a"b\\c\nd',): 1}))[2:]
    assert line == 'searchparty_x_total{kind="a\\"b\\\\c\\nd"} 1'


def test_a_counter_without_labels_is_one_number() -> None:
    assert list(counter("x_total", "X.", (), {(): 3.0}))[2:] == ["searchparty_x_total 3"]
