"""An episode as a person reads it: agents as a tree, each with its own local history, sampled text marked apart.

Draws what is recorded and judges nothing. Foreign text is passed through `printable` and never read as markup.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from searchparty.episodes.printable import printable
from searchparty.episodes.types import Episode, Retrieval, Span, SpanKind, Transcript

DecodeToken = Callable[[str, int], str]
"""Role and token id to the token's text; empty if it is unknown."""

STYLES = {SpanKind.PROMPT: "dim", SpanKind.OBSERVATION: "", SpanKind.ACTION: "bold green"}
MARKS = {SpanKind.PROMPT: "prompt ", SpanKind.OBSERVATION: "saw   │", SpanKind.ACTION: "wrote ▶"}


def draw_episode(episode: Episode, *, prompts: bool = False, tokens: bool = False, decode: DecodeToken | None = None) -> Panel:
    """The whole episode as a panel.

    Args:
        prompts: show system messages and worked examples in full.
        tokens: list every token of every span: its id, its text if `decode` is given, and for sampled ones its log-probability.
    """
    roots = Tree(Text(f"{episode.team} · {episode.steps} environment steps", style="bold"))
    branches: dict[str | None, Tree] = {None: roots}
    for transcript in episode.agents:
        branch = branches[transcript.parent].add(_draw_agent(transcript, episode, prompts, tokens, decode))
        branches[transcript.agent] = branch
    head = Text(printable(episode.question), style="bold")
    ending = f"ended: {episode.stop_reason}" + (f" ({printable(episode.detail)})" if episode.detail else "")
    exact = "token-exact" if episode.token_exact else "not token-exact: the model exchanges text only"
    notes = [ending, f"{episode.seconds:.1f} s", exact]
    if episode.template_rewrites_history:
        notes.append("the model's own template would have changed earlier turns")
    title = Text(printable(f"{episode.question_key} · sample {episode.sample}"))
    return Panel(Group(head, roots, Text(" · ".join(notes))), title=title)


def draw_span(span: Span, *, prompts: bool = False, candidates: int = 1) -> Table:
    """One span with its mark: of several candidates, its number. A prompt is shortened to its length unless asked for."""
    text = printable(span.text)
    if span.kind is SpanKind.PROMPT and not prompts:
        length = f"{len(span.text)} characters" if span.ids is None else f"{len(span.ids)} tokens"
        text = f"(system message and worked examples, {length})"
    mark = MARKS[span.kind] + (f" [{span.candidate + 1}]" if span.candidate is not None and candidates > 1 else "")
    body = Text(text, style=STYLES[span.kind])
    if span.finish_reason == "length":
        body.append("  (cut at the token limit)", style="red")
    return _beside(Text(mark, style=STYLES[span.kind]), body)


def _beside(mark: Text, body: Text) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True)
    row.add_column()
    row.add_row(mark, body)
    return row


def draw_search(retrieval: Retrieval) -> Table:
    """One search: its query and what was found."""
    if retrieval.failure is not None:
        failed = f"“{printable(retrieval.query)}” failed: {printable(retrieval.failure.detail)}"
        return _beside(Text("search ", style="red"), Text(failed, style="red"))
    found = "; ".join(printable(hit.title) for hit in retrieval.hits) or "nothing found"
    return _beside(Text("search ", style="cyan"), Text(f"“{printable(retrieval.query)}” → {found}", style="cyan"))


def _draw_agent(
    transcript: Transcript, episode: Episode, prompts: bool, tokens: bool, decode: DecodeToken | None
) -> RenderableType:
    problem = f", {transcript.problem}" if transcript.problem else ""
    parts: list[RenderableType] = [Text(f"{transcript.agent}  ({transcript.end}{problem})", style="bold magenta")]
    searches = [retrieval for retrieval in episode.retrievals if retrieval.agent == transcript.agent]
    step = 0
    for span in transcript.spans:
        if span.kind is SpanKind.OBSERVATION:
            while searches and searches[0].step <= step:
                parts.append(draw_search(searches.pop(0)))
        parts.append(draw_span(span, prompts=prompts, candidates=len(transcript.last_turn())))
        if tokens:
            parts.append(_draw_tokens(span, transcript.role, decode))
        if span.call is not None:
            step = transcript.calls[span.call].step
    early = [draw_search(retrieval) for retrieval in searches if retrieval.failure is None]
    late = [draw_search(retrieval) for retrieval in searches if retrieval.failure is not None]
    return Group(*parts[:1], *early, *parts[1:], *late)


def _draw_tokens(span: Span, role: str, decode: DecodeToken | None) -> Text:
    if span.ids is None:
        return Text("        no token ids: the model exchanges text only", style="dim")
    words = []
    for position, token in enumerate(span.ids):
        piece = decode(role, token) if decode else ""
        text = f"{printable(piece)!r}" if piece else ""
        logprob = f" {span.logprobs[position]:.3f}" if span.logprobs is not None else ""
        words.append(f"{token}{text}{logprob}")
    return Text(f"        {len(span.ids)} tokens: " + " · ".join(words), style="dim")
