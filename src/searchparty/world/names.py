"""Invented names: every one is made of the same few syllables, so that a small vocabulary spells them all.

A syllable is one consonant and one of four vowels. No English word of the world's sentences has this form throughout, so a name
is known by its letters alone.
"""

from __future__ import annotations

import random

CONSONANTS = "bdfgklmnprstvz"
VOWELS = "aiou"
SYLLABLES = tuple(consonant + vowel for consonant in CONSONANTS for vowel in VOWELS)
NAME_PATTERN = rf"(?:[{CONSONANTS}][{VOWELS}]){{2,4}}"
"""Regular expression of one name word."""

_NEAR = 3
"""Persons that share a family name, on average."""
_PATIENCE = 20
"""Draws of a given name before a family counts as full."""


class NameMaker:
    """Draws name words without repeating one."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def word(self) -> str:
        """A new word of two syllables, sometimes three; longer ones once the short ones run out."""
        syllables = 2 + (self._rng.random() < 0.25) + (len(self._taken) > len(SYLLABLES) ** 2 // 2)
        while True:
            word = "".join(self._rng.choice(SYLLABLES) for _ in range(syllables))
            if word not in self._taken:
                self._taken.add(word)
                return word


class PersonNames:
    """Draws given and family name from small pools, so that near names are common and full names unique."""

    def __init__(self, rng: random.Random, maker: NameMaker, persons: int) -> None:
        self._rng, self._maker = rng, maker
        self._family = [maker.word() for _ in range(max(4, persons // _NEAR))]
        self._given = [maker.word() for _ in range(max(24, persons // 8))]
        self._taken: set[str] = set()

    def draw(self) -> str:
        """A new full name."""
        return self._new(self._rng.choice(self._family))

    def similar(self, name: str) -> str:
        """A new full name with the family name of `name`."""
        return self._new(name.split()[-1])

    def _new(self, family: str) -> str:
        """A free given name in front of `family`; a family that has used up nearly all gets one that is new."""
        for _ in range(_PATIENCE):
            name = f"{self._rng.choice(self._given)} {family}"
            if name not in self._taken:
                break
        else:
            self._given.append(self._maker.word())
            name = f"{self._given[-1]} {family}"
        self._taken.add(name)
        return name
