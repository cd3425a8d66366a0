"""What the library itself costs per model call: many episodes at once with a scripted engine and a retriever that is free.

The time that the script takes to think of its replies is measured apart and taken off, so what is left is ours: prompts,
escaping, ids, records, events. Beside it stands the least that any such loop must do: the same number of awaits through the
same event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import tracemalloc
from dataclasses import replace

import orjson

from searchparty.models.loading import load_model
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.scripted_roles import play_any_role
from searchparty.models.types import GenerateRequest, Sampling
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit, Passage
from searchparty.teams.cast import Part
from searchparty.teams.play import play
from searchparty.teams.prompts import built_in_prompt
from searchparty.teams.registry import BUILT_IN

TEXT = "Paris is the capital and largest city of France, on the river Seine. " * 10


class FreeRetriever:
    async def search(self, query: str, k: int) -> list[Hit]:
        return [Hit(Passage(str(rank), "Paris", TEXT), rank, 1.0 / rank) for rank in range(1, k + 1)]


class TimedScript:
    """The default script; `seconds` is the processor time that it has taken."""

    seconds = 0.0

    def __call__(self, request: GenerateRequest) -> str:
        started = time.process_time()
        reply = play_any_role(request)
        self.seconds += time.process_time() - started
        return reply


async def nothing() -> None:
    await asyncio.sleep(0)


async def measure(episodes: int) -> None:
    print(f"orchestration: {episodes} episodes at once, scripted engine")
    for name, team_class in BUILT_IN.items():
        team = team_class()
        script = TimedScript()
        model = replace(load_model("scripted:default"), engine=ScriptedEngine(script))
        cast = {role: Part(model, built_in_prompt(prompt), Sampling(max_tokens=2048)) for role, prompt in team.prompts.items()}
        questions = [
            Question(str(number), f"What is the capital of country {number}?", ("Paris",), "x") for number in range(episodes)
        ]
        await play(team, questions[0], cast, FreeRetriever())
        script.seconds, started = 0.0, time.process_time()
        done = await asyncio.gather(*(play(team, question, cast, FreeRetriever()) for question in questions))
        thinking = script.seconds
        used = time.process_time() - started - thinking
        calls = sum(len(transcript.calls) for episode in done for transcript in episode.agents)
        started = time.process_time()
        await asyncio.gather(*(nothing() for _ in range(calls)))
        floor = time.process_time() - started
        started = time.process_time()
        written = sum(len(orjson.dumps(episode)) for episode in done)
        dumping = time.process_time() - started
        tracemalloc.start()
        kept = await asyncio.gather(*(play(team, question, cast, FreeRetriever()) for question in questions[:32]))
        memory = tracemalloc.get_traced_memory()[0] / len(kept)
        tracemalloc.stop()
        print(
            f"  {name:13s} {calls / episodes:4.1f} calls/episode  {1000 * used / calls:6.3f} ms/call  "
            f"(event loop alone {1000 * floor / calls:.3f}, script apart {1000 * thinking / calls:.3f})  "
            f"record {written / episodes / 1024:6.1f} KiB, "
            f"{1000 * dumping / episodes:5.2f} ms to write, {memory / 1024:6.0f} KiB held"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=256)
    asyncio.run(measure(parser.parse_args().episodes))


if __name__ == "__main__":
    main()
