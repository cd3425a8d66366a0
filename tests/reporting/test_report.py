"""A report says what the runs say, in every format, and no text in a run can make it say or do anything else."""

from __future__ import annotations

import builtins
import csv
import io
import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_factories import QUESTIONS, write_evaluation, write_finished_training

from searchparty.cli.main import main
from searchparty.errors import UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.questions import write_questions
from searchparty.reporting.document import Document, Number, Section, Table, text_of
from searchparty.reporting.html import as_html
from searchparty.reporting.model_card import make_model_card
from searchparty.reporting.plain_formats import as_csv, as_latex, as_markdown
from searchparty.reporting.plots import CostPoint, draw_cost_quality
from searchparty.reporting.result_tables import Results
from searchparty.reporting.systems import gather
from searchparty.reporting.writing import make_report

HOSTILE = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)> $\\alpha$ | & % # `x` [a](http://b) \x1b[31m"


class Elements(HTMLParser):
    """What a browser would make of a page: its elements and attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def plain(text: str) -> Document:
    table = Table("t", text, ("a", text), [[text, Number(1.0)], ["b", Number(2.0, low=1, high=3)]], [text])
    return Document(text, [Section(text, [text], [table])])


def test_the_page_shows_results_differences_costs_diagnosis_protocol_and_deviations(
    evaluations: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["report", *map(str, evaluations)]) == 0
    folder = evaluations[0].with_name("first-report")
    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out
    seen = Elements((folder / "report.html").read_text())
    text = " ".join(seen.text)
    for heading in (
        "Quality",
        "Against first",
        "What it took",
        "Exact match by dataset",
        "Diagnosis",
        "Protocol",
        "Deviations",
    ):
        assert heading in seen.text
    assert "25.0 [" in text and "75.0 [" in text and "+50.0 [" in text
    assert "Fails most at report: 3 episodes" in text
    assert seen.tags.count("svg") == 2
    rows = list(csv.DictReader((folder / "tables" / "results.csv").open()))
    assert [(row["system"], float(row["EM avg@1"])) for row in rows] == [("first", 0.25), ("second", 0.75)]
    by_dataset = list(csv.DictReader((folder / "tables" / "losses-1.csv").open()))
    assert [(row["dataset"], float(row["report"])) for row in by_dataset] == [("nq", 0.5), ("world", 1.0)]
    assert "\\toprule" in (folder / "tables" / "results.tex").read_text()
    assert "| second | 4 | 75.0" in (folder / "report.md").read_text()


def test_a_page_needs_nothing_else_and_runs_nothing(evaluations: list[Path], training: Path) -> None:
    pytest.importorskip("matplotlib")
    page = as_html(make_report(gather([*evaluations, training])))
    seen = Elements(page)
    assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form", "foreignobject"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "srcset", "data", "action")]
    assert all((value or "").startswith("#") for name, value in seen.attributes if name in ("href", "xlink:href"))
    assert "@import" not in page and "url(http" not in page
    assert "default-src 'none'" in page


def test_markup_from_a_run_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    questions = [replace(one, id=f"{HOSTILE}{one.id}", dataset=f"{HOSTILE}{one.dataset}") for one in QUESTIONS]
    run = write_evaluation(tmp_path / "<b>bold</b>", right=1, questions=questions, identity=HOSTILE, said=HOSTILE)
    document = make_report(gather([run, write_evaluation(tmp_path / "_plain", right=2)]), title=HOSTILE, deviations=[HOSTILE])
    page = as_html(document)
    seen, text = Elements(page), "".join(Elements(page).text)
    assert not {"script", "img", "b", "a"} & set(seen.tags)
    assert text.count("<script>alert(1)</script>") > 5
    assert "<b>bold</b>" in text
    assert "\x1b" not in page
    assert "<script" not in as_markdown(document)
    assert all("<script" not in drawing.svg for drawing in document.drawings)


@given(st.text(max_size=80))
def test_no_text_adds_an_element_to_a_page(text: str) -> None:
    assert Elements(as_html(plain(text))).tags == Elements(as_html(plain("x"))).tags


@given(st.text(max_size=80))
def test_no_text_adds_a_cell_or_a_line_to_a_table(text: str) -> None:
    table = plain(text).tables[0]
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert [len(row) for row in rows] == [4, 4, 4]
    assert not rows[1][0].startswith(("=", "+", "-", "@"))
    lines = as_markdown(plain(text)).splitlines()
    assert len(lines) == len(as_markdown(plain("x")).splitlines())
    bars = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines if line.startswith("| ")]
    assert bars == [3, 3, 3]
    body = [line for line in as_latex(table).splitlines() if not line.startswith("%")]
    assert len(body) == 8
    assert all(line.replace("\\&", "").count("&") == 1 for line in body if line.endswith(r" \\"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. first", r"1\. first"), ("12) then", r"12\) then"), ("- item", r"\- item"), ("+", r"\+"), ("---", r"\---"),
        ("==", r"\=="), ("# head", r"\# head"), ("-5.0 points", "-5.0 points"), ("1.5 points", "1.5 points"),
        ("2018", "2018"), ("+5.0", "+5.0"),
    ],
)  # fmt: skip
def test_a_text_at_the_beginning_of_a_line_is_no_item_heading_or_rule(text: str, shown: str) -> None:
    lines = as_markdown(plain(text)).splitlines()
    assert f"- {shown}" in lines and shown in lines
    assert any(line.startswith(f"| {text} |".replace("#", r"\#")) for line in lines)


@pytest.mark.parametrize("text", ["=1+1", " =1+1", "\n=1+1", "\u00a0@SUM(A1)", "＝1+1", "\t=1", "\r=1", "-1", "+1"])
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(text: str) -> None:
    cell = list(csv.reader(io.StringIO(as_csv(plain(text).tables[0]))))[1][0]
    assert cell.startswith(("'", "\\x0d"))


def test_numbers_are_shown_with_their_interval_and_given_as_data_as_they_are() -> None:
    assert Number(0.4125, 1, 100, 0.37, 0.451).text == "41.2 [37.0, 45.1]"
    assert Number(0.05, 1, 100, -0.01, 0.11, signed=True).text == "+5.0 [-1.0, +11.0]"
    assert (Number(None).text, Number(12345.6, 0).text) == ("–", "12,346")
    table = Table("t", "t", ("a",), [[Number(0.1 + 0.2, 1, 100, 0.1, 0.5)], [Number(None)]])
    assert as_csv(table) == "a,a low,a high\n0.30000000000000004,0.1,0.5\n,,\n"


def test_a_row_of_another_length_than_the_heading_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells under 1 columns"):
        Table("t", "t", ("a",), [["x", "y"]])


def test_a_training_run_brings_its_evaluations_its_changes_and_a_model_card(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["report", str(training)]) == 0
    folder = training.with_name("train-report")
    text = (folder / "report.md").read_text()
    assert "| the student | 4 | 50.0" in text
    assert "episodes without a search rose from 0.0 % to 100.0 % between steps 30 and 31" in text
    assert (folder / "plots" / "courses-1.svg").is_file()
    card = (folder / "model-card-1.md").read_text()
    assert "Model card: small, seed 3" in card
    assert "| the student | searcher, answerer | student | stages/student/checkpoints/step-000060/model | 60 |" in card
    assert "| student | rl | tiny | – | chained | train-questions.jsonl | abc123 | 60 | 1e-06 |" in card.replace("\\_", "_")
    assert "| student | searcher | group-relative | team\\_result 0.9, behaviour 0.1" in card


def test_a_card_says_what_a_distilled_searcher_learns_from_and_that_it_earns_nothing(tmp_path: Path) -> None:
    run = write_finished_training(tmp_path / "opd", "hierarchical", "multiagent-opd", "tiny")
    found = gather([run])
    card = as_markdown(make_model_card(found.trainings[0], found.systems, Results())).replace("\\", "")
    assert "| student | searcher | distillation, coefficient 0.01 | – |" in card
    assert (
        "| student | leader | group-relative | team_result 0.9, assignment 0.1, teacher_kl 0.001, invalid_format -1 |" in card
    )
    assert "the student: most at report, 50.0 % of episodes, such as world/0#0." in card


def test_runs_of_several_seeds_stay_apart(training: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        (tmp_path / "seeds").mkdir(exist_ok=True)
        (tmp_path / "seeds" / f"seed-{seed}").symlink_to(training)
    found = gather([tmp_path / "seeds"])
    assert len(found.systems) == len(found.trainings) == 2
    assert len({system.title for system in found.systems}) == 2


def test_a_title_in_any_script_is_drawn_without_a_warning_and_stays_text(recwarn: pytest.WarningsRecorder) -> None:
    pytest.importorskip("matplotlib")
    title = "日本語 $\\alpha$ & <b>"
    drawing = draw_cost_quality("q", "q", "searches", "F1", [CostPoint(title, 1.0, 0.5, 0.4, 0.6)])
    assert "日本語 $\\alpha$ &amp; &lt;b&gt;" in drawing.svg
    assert not [one for one in recwarn if "Glyph" in str(one.message)]


def test_systems_of_other_questions_stand_side_by_side_and_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first = write_evaluation(tmp_path / "a" / "one", right=1)
    second = write_evaluation(tmp_path / "two", right=1, questions=QUESTIONS[:2])
    document = make_report(gather([first, second]), plots=False)
    assert not [table for table in document.tables if table.name == "differences"]
    differ, compared, *_ = document.sections[0].sentences
    assert differ.startswith("The systems differ in questions: ") and "not compared" in compared


def test_a_retriever_that_differs_is_named_once_and_its_values_once(evaluations: list[Path]) -> None:
    for run, retriever in zip(evaluations, ("bm25", "e5"), strict=True):
        file = RunDirectory(run).environment_file
        file.write_text(json.dumps({**json.loads(file.read_text()), "retriever": retriever}))
    shown = as_markdown(make_report(gather(evaluations), plots=False))
    assert shown.count("differ in retriever") == shown.count("| retriever | first | bm25 |") == 1
    assert shown.count("retriever |") == 2


def test_the_protocol_and_what_departed_from_it_are_named(evaluations: list[Path]) -> None:
    file = RunDirectory(evaluations[0]).environment_file
    protocol = {"name": "multiagent-opd", "version": 1, "departures": ["samples: the protocol has 4, the run 1"]}
    file.write_text(json.dumps({**json.loads(file.read_text()), "protocol": protocol}))
    document = make_report(gather(evaluations), plots=False)
    rows = [row for table in document.tables if table.name == "settings" for row in table.rows]
    assert ["protocol", "first", "multiagent-opd version 1"] in rows and ["protocol", "second", "none"] in rows
    assert "first departs from its protocol: samples: the protocol has 4, the run 1" in document.sections[-1].sentences


def follow(run: Path, **document: Any) -> None:
    """As if the run had followed a protocol that says this."""
    file = RunDirectory(run).environment_file
    protocol = {"name": "p", "version": 1, "document": document, "departures": []}
    file.write_text(json.dumps({**json.loads(file.read_text()), "protocol": protocol}))


def test_systems_of_other_protocols_are_not_compared_and_the_difference_is_printed(evaluations: list[Path]) -> None:
    for samples, run in enumerate(evaluations, start=1):
        follow(run, metric="exact_match", samples=samples)
    document = make_report(gather(evaluations), plots=False)
    assert "differences" not in [table.name for table in document.tables]
    text = as_markdown(document)
    assert "did not follow the same protocol" in text and "protocol samples differs" in text


def test_what_a_protocol_compares_first_is_what_a_report_compares(evaluations: list[Path]) -> None:
    for run in evaluations:
        follow(run, metric="f1")
    text = as_markdown(make_report(gather(evaluations), plots=False))
    assert "F1 less that of first" in text and "F1 by dataset" in text


def test_differences_by_dataset_have_intervals(evaluations: list[Path]) -> None:
    tables = {table.name: table for table in make_report(gather(evaluations), plots=False).tables}
    assert list(tables["differences-by-dataset"].columns) == ["system", "nq", "world", "macro", "micro"]
    rows = list(csv.DictReader(io.StringIO(as_csv(tables["differences-by-dataset"]))))
    assert [float(rows[0][name]) for name in ("nq", "world")] == [0.5, 0.5]
    assert float(rows[0]["nq low"]) <= 0.5 <= float(rows[0]["nq high"])


def test_cost_in_usd_stands_beside_quality_where_a_run_has_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("dated: 2026-01-01\nsource: a test\nmodels: {script: {input: 1.0, output: 3.0}}\n")
    runs = [write_evaluation(tmp_path / "priced", right=1, prices=prices), write_evaluation(tmp_path / "free", right=1)]
    document = make_report(gather(runs), plots=False)
    rows = list(csv.DictReader(io.StringIO(as_csv(next(table for table in document.tables if table.name == "cost")))))
    tokens = float(rows[0]["tokens in"]) + 3 * float(rows[0]["tokens out"])
    assert float(rows[0]["USD"]) == pytest.approx(tokens / 1e6) and rows[1]["USD"] == ""
    pytest.importorskip("matplotlib")
    assert "quality-by-usd" in [drawing.name for drawing in make_report(gather(runs)).drawings]


def test_an_unfinished_run_and_what_is_no_run_are_refused_all_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished = write_evaluation(tmp_path / "unfinished", right=1)
    RunDirectory(unfinished).summary_file.unlink()
    assert main(["report", str(unfinished), str(tmp_path / "nowhere")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2 and "was not finished" in lines[0] and "no run here" in lines[1]


def test_a_summary_of_another_version_is_refused_in_a_line(tmp_path: Path) -> None:
    run = RunDirectory(write_evaluation(tmp_path / "run", right=1))
    run.summary_file.write_text(json.dumps({"quality": {}}))
    with pytest.raises(UserError, match=r"summary\.json: not in the expected form"):
        gather([run.path])


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("quality", "f1", None),
        ("quality", "pass_at_k", {"value": "x"}),
        ("behaviour", "stop_reasons", []),
        ("behaviour", "steps", "x"),
    ],
)
def test_a_number_of_another_form_is_named_with_the_way_out(tmp_path: Path, part: str, name: str, value: Any) -> None:
    run = RunDirectory(write_evaluation(tmp_path / "run", right=1))
    summary = json.loads(run.summary_file.read_text())
    over = {"quality": "macro", "behaviour": "all"}[part]
    summary[part][over][name] = value
    run.summary_file.write_text(json.dumps(summary))
    with pytest.raises(UserError, match=rf"{part}\.{over}\.{name}.*searchparty score"):
        gather([run.path])


def test_a_summary_of_before_there_were_intervals_of_behaviour_is_shown_without_them(tmp_path: Path) -> None:
    run = RunDirectory(write_evaluation(tmp_path / "run", right=1))
    summary = json.loads(run.summary_file.read_text())
    for one in summary["behaviour"].values():
        del one["intervals"]
    run.summary_file.write_text(json.dumps(summary))
    cost = next(table for table in make_report(gather([run.path]), plots=False).tables if table.name == "cost")
    assert "1.00" in [text_of(cell) for cell in cost.rows[0]]


def test_a_folder_that_holds_something_else_is_left_alone(evaluations: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "mine"
    other.mkdir()
    (other / "tables").mkdir()
    assert main(["report", str(evaluations[0]), "-o", str(other)]) == 2
    assert (other / "tables").is_dir()


def test_a_run_may_be_named_by_a_point(evaluations: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(evaluations[0])
    assert main(["report", "."]) == 0
    assert "# first" in (evaluations[0].with_name("first-report") / "report.md").read_text().splitlines()


def test_a_second_report_leaves_nothing_of_the_first(evaluations: list[Path], training: Path, tmp_path: Path) -> None:
    assert main(["report", str(training), *map(str, evaluations), "-o", str(tmp_path / "r")]) == 0
    assert (tmp_path / "r" / "tables" / "differences.csv").is_file()
    assert main(["report", str(evaluations[0]), "-o", str(tmp_path / "r")]) == 0
    assert not (tmp_path / "r" / "tables" / "differences.csv").exists()
    assert not list((tmp_path / "r").glob("model-card-*"))


def test_without_matplotlib_there_is_a_report_without_plots_that_says_so(
    evaluations: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["report", str(evaluations[0])]) == 0
    assert "pip install 'searchparty[plot]'" in capsys.readouterr().err
    assert "Plots are missing" in (evaluations[0].with_name("first-report") / "report.html").read_text()


def test_deviations_of_a_file_are_printed(evaluations: list[Path], tmp_path: Path) -> None:
    (tmp_path / "deviations.txt").write_text("Half of the training questions.\n\nAnother retriever.\n")
    assert main(["report", str(evaluations[0]), "--deviations", str(tmp_path / "deviations.txt")]) == 0
    text = (evaluations[0].with_name("first-report") / "report.md").read_text()
    assert "- Half of the training questions." in text and "- Another retriever." in text


def test_every_report_says_which_questions_were_trained_on_or_that_it_does_not_know(
    evaluations: list[Path], training: Path
) -> None:
    alone = as_markdown(make_report(gather(evaluations), plots=False))
    assert "## Overlap of training and evaluation\n\n- Not known: no training run is part of this report." in alone
    document = make_report(gather([training, *evaluations]), plots=False)
    (table,) = [table for table in document.tables if table.name == "overlap"]
    (row,) = table.rows
    assert row[:2] == [f"{training}: student", "the student, first, second"]
    assert [cell.text for cell in row[2:] if isinstance(cell, Number)] == ["4", "4", "4", "0", "0"]


def test_questions_that_models_were_trained_on_elsewhere_are_compared_too(evaluations: list[Path], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    write_questions(
        elsewhere, [replace(QUESTIONS[0], id="of another set", dataset="elsewhere"), replace(QUESTIONS[1], text="Who?")]
    )
    assert main(["report", str(evaluations[0]), "--trained-on", str(elsewhere), "-o", str(tmp_path / "r")]) == 0
    (row,) = csv.DictReader((tmp_path / "r" / "tables" / "overlap.csv").open())
    assert (row["training"], row["evaluations"], row["questions trained on"], row["same text"]) == (
        str(elsewhere),
        "first",
        "2.0",
        "4.0",
    )
    assert main(["report", str(evaluations[0]), "--trained-on", str(tmp_path / "gone"), "-o", str(tmp_path / "r")]) == 2


def test_a_report_whose_training_questions_are_gone_says_so(training: Path, tmp_path: Path) -> None:
    (tmp_path / "train-questions.jsonl").unlink()
    document = make_report(gather([training]), plots=False)
    (section,) = [section for section in document.sections if section.title.startswith("Overlap")]
    assert section.sentences[0].startswith(f"Not known for {training}: student: ")


def test_what_a_model_card_shares_with_its_report_is_computed_once(training: Path) -> None:
    found, results = gather([training]), Results()
    document = make_report(found, plots=False, results=results)
    card = make_model_card(found.trainings[0], found.systems, results)
    assert any(section is shared for section in card.sections for shared in document.sections)
