"""A short, seeded attack on every kind of input, and every input that once broke something; `make fuzz MINUTES=n` goes on."""

import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.kinds import KINDS, attack, warm
from fuzz.seeds import CASES, logs

SECONDS = 1.5  # for each kind


def test_the_seeds_themselves_are_taken():
    for name, data in logs().items():
        assert attack("log", data), name


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutation_breaks_it(kind):
    warm(kind)
    rng, until = random.Random(f"{kind} 1"), time.monotonic() + SECONDS
    while time.monotonic() < until:
        attack(kind, KINDS[kind].makes(rng))


@pytest.mark.parametrize("case", sorted(CASES.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_it_no_longer_does(case):
    attack(case.parent.name, case.read_bytes())


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(KINDS)),
    st.binary(max_size=400) | st.text(max_size=400).map(str.encode),
)
def test_anything_at_all(kind, data):
    attack(kind, data)
