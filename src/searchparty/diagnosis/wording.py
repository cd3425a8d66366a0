"""A diagnosis in plain words. Formats what was found; computes nothing and judges nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.reading import EvaluationDiagnosis, StageDiagnosis
from searchparty.diagnosis.series import BehaviourChange
from searchparty.diagnosis.summary import Diagnosis, Loss

SHOWN_PLANS = 6
SHOWN_ALARMS = 5
MEANINGS = {
    Interface.SERVICE: "a model, the retriever or the team's code failed, which says nothing about the roles",
    Interface.FORMAT: "the episode ended without a well-formed answer: a turn in the wrong form, or a limit",
    Interface.NO_SEARCH: "an answer was given although nobody had searched",
    Interface.RETRIEVAL: "searches did not find what the answer rests on",
    Interface.REPORT: "the evidence was found, and no report holds it",
    Interface.SELECTION: "the evidence was there, and the Answerer did not get all of it",
    Interface.ANSWER: "the Answerer had the evidence, and answered something else",
    Interface.UNKNOWN: "the question names no passages, and its answer is none that can be looked for",
}


def in_words(diagnosis: Diagnosis) -> list[str]:
    """The main findings, one sentence a line."""
    lines = [
        f"{_counted(diagnosis.episodes)}, {diagnosis.questions} different questions, "
        f"{_sure(diagnosis, 'right', diagnosis.right)} right.",
        *map(_loss, diagnosis.losses),
    ]
    if diagnosis.losses:
        lines[1] = f"Fails most at {lines[1]}"
    endings = ", ".join(f"{reason} {count}" for reason, count in diagnosis.stop_reasons.items())
    lines += [
        f"Endings: {endings}.",
        *_way(diagnosis),
        *_searching(diagnosis),
        *_formats(diagnosis),
        *_plans(diagnosis),
        *_groups(diagnosis),
    ]
    return lines


def not_played_in_words(evaluation: EvaluationDiagnosis) -> list[str]:
    """That episodes are missing, of an evaluation that is not finished."""
    if not evaluation.not_played:
        return []
    return [f"Not finished: {_counted(evaluation.not_played)} asked for and not played; what follows is of those played."]


def course_in_words(stage: StageDiagnosis) -> list[str]:
    """How a training stage went: its changes, or why none is shown."""
    if stage.changes:
        return list(map(change_in_words, stage.changes))
    longest = max((len(series.values) for series in stage.series), default=0)
    if longest < stage.fewest_steps:
        return [f"{longest} steps are too few to tell whether behaviour changed: {stage.fewest_steps} are needed."]
    return [f"No change of behaviour is shown over {longest} steps."]


def change_in_words(change: BehaviourChange) -> str:
    """One change of a training stage as a sentence."""
    where = "" if change.kind == "step" else " of the development questions"
    verb = "rose" if change.after > change.before else "fell"
    shown = [_percent(level) if change.is_share else f"{level:.4g}" for level in (change.before, change.after)]
    return (
        f"{change.name}{where} {verb} from {shown[0]} to {shown[1]} between steps {change.after_step} and {change.by_step} "
        f"(p {_p(change.p)})"
    )


def examples_in_words(losses: Iterable[Loss]) -> list[str]:
    """The episodes that show each loss, one line for each interface."""
    return [f"{loss.interface}: {', '.join(loss.examples)}" for loss in losses]


def alarms_in_words(alarms: Sequence[str]) -> list[str]:
    """The first alarms of a training, and how many more there were."""
    more = [f"{len(alarms) - SHOWN_ALARMS} more alarms: see metrics.jsonl"] if len(alarms) > SHOWN_ALARMS else []
    return [*(f"Alarm at {alarm}" for alarm in alarms[:SHOWN_ALARMS]), *more]


def _loss(loss: Loss) -> str:
    interval = f"[{100 * loss.low:.1f}, {100 * loss.high:.1f}]"
    return f"{loss.interface}: {_counted(loss.episodes)}, {_percent(loss.share)} {interval}: {MEANINGS[loss.interface]}."


def _way(diagnosis: Diagnosis) -> list[str]:
    way = diagnosis.evidence
    if way is None:
        return ["No question names its passages, so evidence was followed by golden answers alone."]
    stages = {"found": "found", "reported": "in a report", "selected": "in a selected report"}
    shares = {part: getattr(way, part) for part in stages}
    shown = [f"{stages[part]} {_sure(diagnosis, part, share)}" for part, share in shares.items() if share is not None]
    return [f"Golden passages: {', '.join(shown)}; right answers {_sure(diagnosis, 'answered', way.answered)}."]


def _searching(diagnosis: Diagnosis) -> list[str]:
    line = (
        f"Searches per episode {_mean(diagnosis, 'searches', diagnosis.searches)}; episodes without any "
        f"{_sure(diagnosis, 'no_search', diagnosis.no_search)}; repeated "
        f"{_sure(diagnosis, 'repeated_searches', diagnosis.repeated_searches)}, empty "
        f"{_sure(diagnosis, 'empty_searches', diagnosis.empty_searches)} of all searches."
    )
    lines = [line]
    if diagnosis.reports_used is not None:
        rounds = "" if diagnosis.rounds is None else f" Assignments per episode {_mean(diagnosis, 'rounds', diagnosis.rounds)}."
        lines.append(f"Reports that reached the Answerer: {_sure(diagnosis, 'reports_used', diagnosis.reports_used)}.{rounds}")
    return lines


def _formats(diagnosis: Diagnosis) -> list[str]:
    lines = []
    for role, use in diagnosis.roles.items():
        if use.format_failures:
            kinds = ", ".join(f"{kind} {count}" for kind, count in use.format_failures.items())
            lines.append(f"Turns in the wrong form, {role}: {kinds}.")
    return lines


def _plans(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.workflows:
        return []
    plans = ", ".join(f"{workflow} ({count})" for workflow, count in list(diagnosis.workflows.items())[:SHOWN_PLANS])
    more = f"; {len(diagnosis.workflows) - SHOWN_PLANS} more" if len(diagnosis.workflows) > SHOWN_PLANS else ""
    lines = [f"Workflows: {plans}{more}."]
    for executor, problems in diagnosis.executor_problems.items():
        kinds = ", ".join(f"{kind} {count}" for kind, count in problems.items())
        lines.append(f"Nothing usable came from {executor}: {kinds}.")
    return lines


def _groups(diagnosis: Diagnosis) -> list[str]:
    lines = []
    for name, groups in (
        ("attempts at one question", diagnosis.episode_groups),
        ("candidates of one answer call", diagnosis.candidate_groups),
    ):
        if groups.all_right + groups.all_wrong + groups.mixed:
            lines.append(f"Groups of {name}: {groups.all_right} all right, {groups.all_wrong} all wrong, {groups.mixed} mixed.")
    if lines:
        lines.append(f"Different answers of a question: {_mean(diagnosis, 'distinct_answers', diagnosis.distinct_answers)}.")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _sure(diagnosis: Diagnosis, name: str, share: float) -> str:
    """A share, with its interval where there is something of which to have a share."""
    if name not in diagnosis.intervals:
        return _percent(share)
    low, high = diagnosis.intervals[name]
    return f"{_percent(share)} [{100 * low:.1f}, {100 * high:.1f}]"


def _mean(diagnosis: Diagnosis, name: str, mean: float) -> str:
    low, high = diagnosis.intervals[name]
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _counted(episodes: int) -> str:
    return "1 episode" if episodes == 1 else f"{episodes} episodes"
