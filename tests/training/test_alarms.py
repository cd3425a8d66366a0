"""Contract 9: silence is an alarm, and so is a share that jumps or a sampler that disagrees with the learner."""

from __future__ import annotations

import pytest

from searchparty.credit.findings import Finding, FindingKind
from searchparty.training.alarms import Alarms
from searchparty.training.recipe import AlarmSpec

NO_SEARCH = "episodes without a search"


def test_contract_9_a_share_that_jumps_is_heard_with_its_usual_level() -> None:
    alarms = Alarms(AlarmSpec(jump_by=0.2))
    for share in (0.1, 0.2, 0.3):
        assert alarms.hear([], {NO_SEARCH: share}, {}) == []
    (alarm,) = alarms.hear([], {NO_SEARCH: 0.45}, {})
    assert (alarm.name, alarm.action) == ("jump", "warn")
    assert alarm.detail == "episodes without a search rose to 45%, from 20% over the last 3 steps"


def test_contract_9_a_share_that_falls_or_rises_a_little_is_no_alarm() -> None:
    alarms = Alarms(AlarmSpec(jump_by=0.2))
    assert [alarms.hear([], {NO_SEARCH: share}, {}) for share in (0.9, 0.1, 0.6, 0.7)] == [[], [], [], []]


def test_contract_9_only_the_last_steps_are_the_usual_level() -> None:
    alarms = Alarms(AlarmSpec(jump_by=0.2, window=2))
    for share in (0.9, 0.9, 0.1, 0.1):
        alarms.hear([], {NO_SEARCH: share}, {})
    assert len(alarms.hear([], {NO_SEARCH: 0.4}, {})) == 1


def test_contract_9_a_resumed_run_remembers_what_was_usual() -> None:
    alarms = Alarms(AlarmSpec())
    alarms.remember({NO_SEARCH: 0.0})
    assert [alarm.name for alarm in alarms.hear([], {NO_SEARCH: 0.5}, {})] == ["jump"]
    assert Alarms(AlarmSpec()).hear([], {NO_SEARCH: 0.5}, {}) == []


def test_contract_9_a_sampler_with_other_weights_is_heard_per_role() -> None:
    alarms = Alarms(AlarmSpec(mismatch="stop", mismatch_above=0.1))
    (alarm,) = alarms.hear([], {}, {"searcher": 0.25, "answerer": 0.09, "leader": None})
    assert (alarm.name, alarm.action) == ("mismatch", "stop")
    assert alarm.detail.startswith("searcher: sampler and learner differ by 0.250 nats a token")


@pytest.mark.parametrize("kind", FindingKind)
def test_contract_9_every_kind_of_finding_belongs_to_an_alarm(kind: FindingKind) -> None:
    (alarm,) = Alarms(AlarmSpec(no_signal="stop")).hear([Finding(kind, "searcher", "no token")], {}, {})
    assert alarm.action == "stop"
    assert str(alarm) == f"{alarm.name}: {kind}: searcher: no token"


def test_contract_9_silence_and_numbers_that_are_not_finite_stop_unless_the_recipe_says_otherwise() -> None:
    silence = Finding(FindingKind.NO_TRAINABLE_TOKENS, "searcher", "none")
    nothing_scored = Finding(FindingKind.NOTHING_SCORED, "searcher", "none")
    infinite = Finding(FindingKind.NON_FINITE, "searcher", "inf")
    heard = Alarms(AlarmSpec()).hear([silence, nothing_scored, infinite], {}, {})
    assert [(alarm.name, alarm.action) for alarm in heard] == [
        ("silence", "stop"), ("silence", "stop"), ("non_finite", "stop"),
    ]  # fmt: skip
    ignored = Alarms(AlarmSpec(silence="ignore", non_finite="warn"))
    assert [alarm.name for alarm in ignored.hear([silence, infinite], {}, {})] == ["non_finite"]
