"""A run's summary read back from `summary.json`, so that whoever shows it need not ask whether a number is there.

Knows the form that `summary` gives it; computes nothing.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from searchparty.errors import UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.summary import RunSummary
from searchparty.files import read_json

_FORM = TypeAdapter(RunSummary)


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """The whole summary of a run that was scored, `provenance` included.

    One of an older version may lack `intervals` of behaviour and `pass_at`; these are then empty.

    Raises:
        UserError: anything else has another form; names the first such place.
    """
    try:
        return read_json(directory.summary_file, _checked)
    except UserError as error:
        raise UserError(f"{error}; make it anew: searchparty score {directory.path}") from None


def _checked(value: Any) -> dict[str, Any]:
    quality = {name: {"pass_at": {}, **one} for name, one in dict(value["quality"]).items()}
    behaviour = {name: {"intervals": {}, **one} for name, one in dict(value["behaviour"]).items()}
    quality["macro"], behaviour["all"]
    found = {**value, "quality": quality, "behaviour": behaviour, "provenance": dict(value.get("provenance") or {})}
    try:
        _FORM.validate_python(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return found
