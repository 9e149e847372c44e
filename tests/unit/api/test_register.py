"""`dpmix.register` refuses what is not whole, in one sentence, and registers nothing then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import pytest

from dpmix.api.register import register
from dpmix.errors import UsageError
from dpmix.kernels.layout import Layout
from dpmix.laws.law_base import Law
from dpmix.mechanisms.channels.channel_functions import hides
from dpmix.mechanisms.laplace.law import LaplaceLaw
from dpmix.numerics import jit
from dpmix.spec.capabilities import SamplerCapabilities
from dpmix.spec.kinds import KERNELS, MECHANISMS, SAMPLERS
from dpmix.spec.mechanism_section import MechanismSection
from dpmix.spec.model_section import MixtureSection


class Toy(MechanismSection):
    released = "records"
    kind: Literal["toy"]


class Whole(MechanismSection):
    released = "something else"
    kind: Literal["whole"]


class Nameless(MechanismSection):
    kind: str


class Shipped(MechanismSection):
    kind: Literal["laplace"]


class ToyLaw(Law):
    capabilities = Toy

    def observe(self, values: Any, n: int, columns: Any, *, rows: bool) -> Any:
        raise NotImplementedError


class Blind(Law):
    capabilities = Toy


class WholeLaw(Law):
    capabilities = Whole


class Counts(MechanismSection):
    released = "noisy_counts"
    kind: Literal["counts"]


class CountsLaw(Law):
    capabilities = Counts


class Bins(MechanismSection):
    released = "histogram"
    kind: Literal["bins"]


class BinsLaw(Law):
    capabilities = Bins


class Added(MechanismSection):
    released = "records"
    additive = True
    kind: Literal["added"]


class AddedLaw(Law):
    capabilities = Added


class Told(MechanismSection):
    released = "records"
    transitional = True
    kind: Literal["told"]


class ToldLaw(Law):
    capabilities = Told


class Channel(NamedTuple):
    scale: float


class Half(NamedTuple):
    scale: float


class Kernel(NamedTuple):
    mean: float
    parameters = {"mean": ()}
    constants: Any = None

    @classmethod
    def of_spec(cls, section: Any, bounds: Any) -> Any:
        return cls(0.0)


class Bare(NamedTuple):
    mean: float


class Mixture(MixtureSection):
    kernel: Literal["toy"]


class Several(MixtureSection):
    several = True
    kernel: Literal["rows"]


class Algorithm(NamedTuple):
    auxiliary: int


class Odd(NamedTuple):
    temperature: float


hides.register(lambda channel: True, Half, compiled=False)
CURATOR = SimpleNamespace(make=print, stated=print)
LAYOUT = Layout("toy", "own", ("mean",), (), ())
CAN = SamplerCapabilities("toy")


@pytest.mark.parametrize(
    ("section", "parts", "words"),
    [
        (Toy, {}, "toy has no law; give law="),
        (Toy, {"law": ToyLaw}, "toy has no curator; give curator="),
        (
            Toy,
            {"law": ToyLaw, "curator": CURATOR, "kernel": Kernel},
            "kernel is no part of toy; leave it out",
        ),
        (Toy, {"law": LaplaceLaw, "curator": CURATOR}, "must be a Law with capabilities = Toy, its section"),
        (Toy, {"law": ToyLaw, "curator": SimpleNamespace(make=print)}, "lacks stated(section, records)"),
        (Toy, {"law": ToyLaw, "curator": CURATOR}, "toy releases records: it needs a channel"),
        (Toy, {"law": Blind, "curator": CURATOR, "channel": Channel}, "the law of toy lacks observe"),
        (Toy, {"law": ToyLaw, "curator": CURATOR, "channel": int}, "the channel of toy must be a NamedTuple"),
        (
            Toy,
            {"law": ToyLaw, "curator": CURATOR, "channel": Channel},
            "toy lacks hides; register it for Channel",
        ),
        (
            Toy,
            {"law": ToyLaw, "curator": CURATOR, "channel": Half},
            "toy lacks noise_variance; register it for Half",
        ),
        (
            Whole,
            {"law": WholeLaw, "curator": CURATOR, "channel": Channel},
            "whole releases something else: it has a channel, and mixtures take records or histograms alone",
        ),
        (
            Counts,
            {"law": CountsLaw, "curator": CURATOR},
            "counts releases noisy_counts, so that its law must be a NoisyCountsLaw",
        ),
        (
            Bins,
            {"law": BinsLaw, "curator": CURATOR, "channel": Channel},
            "bins releases histogram, so that its law must be a HistogramLaw",
        ),
        (
            Added,
            {"law": AddedLaw, "curator": CURATOR, "channel": Channel},
            "added says that it is additive, so that its law must be an Additive",
        ),
        (
            Told,
            {"law": ToldLaw, "curator": CURATOR, "channel": Channel},
            "told says that it is transitional, and its law lacks transition",
        ),
        (Nameless, {"law": ToyLaw, "curator": CURATOR}, 'Nameless must have a field kind: Literal["NAME"]'),
        (
            Shipped,
            {"law": LaplaceLaw, "curator": CURATOR},
            "laplace is the name of one that ships; choose another",
        ),
        (Mixture, {}, "toy has no kernel; give kernel="),
        (
            Mixture,
            {"kernel": Bare, "family": print, "layout": LAYOUT},
            "the kernel Bare of toy lacks parameters",
        ),
        (
            Mixture,
            {"kernel": Kernel, "family": print, "layout": "own"},
            "must be a Layout of the kernel toy",
        ),
        (
            Mixture,
            {"kernel": Kernel, "family": print, "layout": LAYOUT},
            "toy lacks draw_prior; register it for Kernel",
        ),
        (
            Several,
            {"kernel": Kernel, "family": print, "layout": Layout("rows", "own", (), (), ())},
            "rows is for several columns, and what is registered is for one",
        ),
        (CAN, {}, "toy has no algorithm; give algorithm="),
        (CAN, {"algorithm": Odd}, "the algorithm of toy has the field temperature"),
        (CAN, {"algorithm": Algorithm}, "toy lacks sweep; register it for Algorithm and Serial"),
        (
            SamplerCapabilities("toy", mixtures=False),
            {"algorithm": Algorithm},
            "toy must be a sampler of mixtures",
        ),
        (SamplerCapabilities("neal8"), {"algorithm": Algorithm}, "neal8 is the name of one that ships"),
        (int, {}, "the section must be a MechanismSection, a MixtureSection or a SamplerCapabilities, not"),
    ],
)
def test_what_is_not_whole_is_refused(section: Any, parts: dict[str, Any], words: str) -> None:
    before = [kinds.names for kinds in (MECHANISMS, KERNELS, SAMPLERS)]
    with pytest.raises(UsageError) as caught:
        register(section, **parts)
    assert words in str(caught.value) and str(caught.value).startswith("register: ")
    assert "\n" not in str(caught.value)
    assert [kinds.names for kinds in (MECHANISMS, KERNELS, SAMPLERS)] == before


def test_files_that_join_change_the_key_of_kept_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digest_of: Callable[[], str]
) -> None:
    monkeypatch.setattr(jit, "_MADE", [])  # functions of this process stay where they are
    monkeypatch.setattr(jit, "_JOINED", {})
    file = tmp_path / "toy.py"
    file.write_text("a = 1\n")
    before = digest_of()
    jit.join(file)
    joined = digest_of()
    jit.join(file)
    assert digest_of() == joined != before
    file.write_text("a = 2\n")
    jit.join(file)
    assert digest_of() not in (before, joined)


@pytest.fixture
def digest_of() -> Any:
    yield lambda: jit._source_digest("")
    jit._source_digest.cache_clear()
    jit._cache_directory.cache_clear()
