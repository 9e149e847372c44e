"""Models that users bring: data augmentation over a Python file's record, update, statistic and release."""

from __future__ import annotations

import contextlib
import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DpmixError
from dpmix.models import sum_augmentation
from dpmix.models.custom.section import CustomModel
from dpmix.models.custom.user_code import FUNCTIONS, UserCode, load_code
from dpmix.models.model_protocols import Arrays, Parameter, ParametricChain, ParametricModel
from dpmix.models.sum_augmentation import AugmentedChain, default_offers, make_tally
from dpmix.numerics.jit import fresh_njit, keep_nothing
from dpmix.release.sanitized import Release
from dpmix.spec.run_spec import RunSpec

__all__ = ["Custom", "build"]

Floats = NDArray[np.float64]


class Custom(ParametricModel):
    """A user's model given a release.

    Parameters
    ----------
    code : UserCode
        The file, checked by name.
    model : NamedTuple
        Its hyperparameters.
    released : ndarray of float64, shape (rows,) or (rows, columns)
        The released values.
    n : int
        Number of records.
    soma : bool
        Whether to offer one record to all.
    bound : float
        What the acceptance rate cannot fall below, or NaN.
    """

    kind = "custom"

    def __init__(
        self, code: UserCode, model: Any, released: Floats, n: int, *, soma: bool, bound: float
    ) -> None:
        self.code, self.n, self.soma = code, n, soma
        self.acceptance_bound = bound
        self.sizes = code.sizes(model)
        self.width, self.size = code.number("WIDTH", model), code.number("SIZE", model)
        code.try_out(model, released, n)
        law, self.start = _law(code)
        self.law = law(model, released)
        self.parameters = tuple(
            Parameter(name, (f"{name}_entry",) if count else ()) for name, count in self.sizes.items()
        )
        self.coords = {
            f"{name}_entry": np.arange(1, count + 1) for name, count in self.sizes.items() if count
        }
        self.constants = {"n": float(n)}
        self.attrs = {"code": code.path.name, "code_digest": code.digest}

    def make_chain(self, rng: Generator, pool: Any = None) -> ParametricChain:
        """Return a chain that starts from the prior."""
        return CustomChain(self, rng)


class CustomChain(AugmentedChain):
    """A chain of a user's model; theta is one array with all parameters in order."""

    def __init__(self, model: Custom, rng: Generator) -> None:
        theta = np.zeros(sum(max(count, 1) for count in model.sizes.values()))
        records = np.zeros((model.n, model.width))
        offers = default_offers(model.n) if model.soma else 0
        self._code, self._sizes, self._possible = model.code, model.sizes, True
        with self._told():
            model.start(model.law, rng, theta, records)
            super().__init__(model, rng, model.law, theta, records, make_tally(model.size), offers)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Name the line of what the user's functions raise."""
        try:
            yield
        except DpmixError:
            raise
        except Exception as error:
            raise self._code.raised(error, "a function") from None

    def sweep(self, count: int) -> None:
        """Sweep over records and theta.

        Raises
        ------
        SpecError
            When a function of the file raises, with its line.
        """
        with self._told():
            super().sweep(count)

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws, which are the prior's where no database can give the release."""
        if not self._possible:
            return (
                "found no records under which log_release is a finite number",
                "look for released values that the model cannot give, or for a longer burn_in",
            )
        return super().fault(draws)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the parameters."""
        self._possible = self._possible and math.isfinite(self.tally.level[0])
        start = 0
        for name, count in self._sizes.items():
            stop = start + max(count, 1)
            out[name][row] = self.theta[start:stop] if count else self.theta[start]
            start = stop


_LAWS: dict[tuple[str, str], tuple[type, Callable[..., None]]] = {}


def _law(code: UserCode) -> tuple[type, Callable[..., None]]:
    """Return the class that a file's functions are registered for, and what starts a chain.

    There is one class for each name and text of a file. What is compiled for it stays in this process: on
    disk it could be taken for that of another file.
    """
    key = code.path.name, code.digest
    if key in _LAWS:
        return _LAWS[key]
    prior, draw, update, part, level = (code.compiled(name) for name in FUNCTIONS)
    law = cast(type, namedtuple(f"Law_{code.digest[:16]}", ["model", "released"]))

    def start(law: Any, rng: Any, theta: Any, records: Any) -> None:
        prior(law.model, rng, theta)
        for i in range(len(records)):
            draw(law.model, rng, theta, records[i])

    def draw_record(law: Any, rng: Any, theta: Any, record: Any) -> None:
        draw(law.model, rng, theta, record)

    def draw_theta(law: Any, rng: Any, theta: Any, records: Any, tally: Any) -> None:
        update(law.model, rng, theta, records)

    def statistic(law: Any, record: Any, out: Any) -> None:
        part(law.model, law.released, record, out)

    def log_release(law: Any, sums: Any) -> Any:
        return level(law.model, law.released, sums)

    keep_nothing(*vars(sum_augmentation).values())
    for function in (draw_record, draw_theta, statistic, log_release):
        registered = getattr(sum_augmentation, function.__name__)
        registered.register(fresh_njit(function), law, compiled=False)
    sum_augmentation.by_statistic(law, fresh_njit)
    _LAWS[key] = law, fresh_njit(start)
    return _LAWS[key]


def build(spec: RunSpec, release: Release, *, allow_code: bool = False) -> Custom:
    """Return the model that a spec's file defines, given a release.

    Raises
    ------
    SpecError
        When the file may not run, or is not as it should be.
    """
    section = spec.model
    assert isinstance(section, CustomModel)  # registered for it
    code = load_code(Path(section.file), allowed=allow_code)
    given = dict(section.model_extra or {})
    scales = release.scales
    known = {
        "n": release.n,
        "epsilon": release.epsilon,
        "scale": scales[0] if len(set(scales)) == 1 else (list(scales) or None),
    }
    model = code.hyperparameters(given, known)
    values = np.ascontiguousarray(release.values, dtype=np.float64)
    released = np.ascontiguousarray(values[:, 0]) if values.shape[1] == 1 else values
    pure = release.epsilon is not None and math.isfinite(release.epsilon) and not release.delta
    return Custom(
        code,
        model,
        released,
        release.n,
        soma=spec.sampler.kind == "soma",
        bound=math.exp(-float(release.epsilon or 0.0)) if pure else math.nan,
    )
