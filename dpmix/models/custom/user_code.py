"""Python files with models of the users' own: loading, checking by name and by trial, compiling."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.numerics.jit import fresh_njit

__all__ = ["FUNCTIONS", "UserCode", "load_code"]

FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "draw_prior": ("model", "rng", "theta"),
    "draw_record": ("model", "rng", "theta", "record"),
    "draw_theta": ("model", "rng", "theta", "records"),
    "statistic": ("model", "released", "record", "out"),
    "log_release": ("model", "released", "sums"),
}
"""What a file defines, by name, and the arguments of each."""

_TELLING = ("Untyped", "Unknown attribute", "No implementation", "annot ", "not defined", "Use of")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UserCode:
    """A loaded file.

    Parameters
    ----------
    path : Path
        The file.
    digest : str
        Of its text.
    model_class : type
        The NamedTuple of hyperparameters.
    module : module
        What running the file made.
    functions : mapping of str to callable
        As they stand in the file, by name.
    """

    path: Path
    digest: str
    model_class: type
    module: ModuleType
    functions: Mapping[str, Callable[..., Any]]

    def number(self, name: str, model: Any) -> int:
        """Return WIDTH or SIZE of the file: a whole number, or a function of the model that gives one.

        Raises
        ------
        SpecError
            When it gives none.
        """
        value = getattr(self.module, name)
        if callable(value):
            value = self.call(name, value, model)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise self.problem(
                f"{name} must be a whole number of at least 1, or a function of the model giving one"
            )
        return int(value)

    def sizes(self, model: Any) -> dict[str, int]:
        """Return PARAMETERS of the file: names, and how many numbers each has (0: one, without a dimension).

        Raises
        ------
        SpecError
            When it is no such mapping.
        """
        value = self.module.PARAMETERS
        if callable(value):
            value = self.call("PARAMETERS", value, model)
        good = isinstance(value, Mapping) and value
        for name, count in dict(value).items() if good else ():
            whole = isinstance(count, int | np.integer) and not isinstance(count, bool) and count >= 0
            if not isinstance(name, str) or not name.isidentifier() or not whole:
                raise self.problem(
                    f"PARAMETERS: {name!r} must be a name with a whole number, its length (0: one number)"
                )
            if name in ("chain", "draw", "acceptance_rate", "log_likelihood"):
                raise self.problem(f"PARAMETERS: {name} is taken by the chains file; choose another name")
        if not good:
            raise self.problem("PARAMETERS must map the name of each parameter to its length (0: one number)")
        return {name: int(count) for name, count in value.items()}

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the file, uncompiled.

        Raises
        ------
        SpecError
            When it raises, with the line of the file.
        """
        try:
            with np.errstate(all="ignore"):
                return function(*arguments)
        except Exception as error:
            raise self.raised(error, name) from None

    def hyperparameters(self, given: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
        """Return the model: what the spec gives, else what is known of the release, else defaults.

        Numbers become floats and lists arrays, so that the same kinds of values are compiled once.

        Raises
        ------
        SpecError
            When a key is unknown or missing, or no number or list of numbers.
        """
        fields: tuple[str, ...] = self.model_class._fields  # type: ignore[attr-defined]  # a NamedTuple
        defaults: dict[str, Any] = self.model_class._field_defaults  # type: ignore[attr-defined]
        for key in given:
            if key not in fields and key != "n":  # which a release that is no file needs in any case
                known_fields = ", ".join(fields) or "no fields"
                raise SpecError(f"model.{key}: unknown key; Model of {self.path.name} has {known_fields}")
        values = {}
        for name in fields:
            source = given if name in given else known if known.get(name) is not None else defaults
            if name not in source:
                raise SpecError(f"model.{name}: missing; Model of {self.path.name} has no default for it")
            values[name] = self._value(name, source[name])
        return self.model_class(**values)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, bool | str | Mapping) or value is None:
            raise SpecError(f"model.{name}: must be a number or a list of numbers")
        if isinstance(value, int | float | np.number):
            value = float(value)
        try:
            found = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise SpecError(f"model.{name}: must be a number or a list of numbers") from None
        if not np.isfinite(found).all():
            raise SpecError(f"model.{name}: must be finite")
        return value if isinstance(value, float) else np.ascontiguousarray(found)

    def compiled(self, name: str) -> Callable[..., Any]:
        """Return a function of the file, to be compiled at its first call."""
        return fresh_njit(self.functions[name])

    def try_out(self, model: Any, released: Floats, n: int, seed: int = 0) -> None:
        """Call every function once as Python and once compiled, on a database of few records.

        Raises
        ------
        SpecError
            When one raises, does not compile, or returns or writes what it should not; with the line of the
            file where there is one.
        """
        self._trial(model, released, n, self.functions, seed)
        compiled = {name: self.compiled(name) for name in FUNCTIONS}
        self._trial(model, released, n, compiled, seed)

    def _trial(
        self, model: Any, released: Floats, n: int, functions: Mapping[str, Callable[..., Any]], seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        theta = np.full(sum(max(count, 1) for count in self.sizes(model).values()), np.nan)
        records = np.full((max(1, min(n, 3)), self.number("WIDTH", model)), np.nan)
        sums, part = np.zeros(self.number("SIZE", model)), np.zeros(self.number("SIZE", model))
        self._step("draw_prior", functions, model, rng, theta)
        self._written("draw_prior", "theta", theta)
        for record in records:
            self._step("draw_record", functions, model, rng, theta, record)
            self._written("draw_record", "record", record)
            part[:] = np.nan
            self._step("statistic", functions, model, released, record, part)
            self._written("statistic", "out", part)
            sums += part
        level = self._step("log_release", functions, model, released, sums)
        if (
            isinstance(level, bool)
            or not isinstance(level, float | int | np.number)
            or np.isnan(float(level))
        ):
            raise self.problem(
                "log_release must return a number, the log density of the release", "log_release"
            )
        self._step("draw_theta", functions, model, rng, theta, records)
        self._written("draw_theta", "theta", theta)
        self._written("draw_theta", "records", records)

    def _step(self, name: str, functions: Mapping[str, Callable[..., Any]], *arguments: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                found = functions[name](*arguments)
        except Exception as error:
            raise self.raised(error, name) from None
        if name != "log_release" and found is not None:
            raise self.problem(f"{name} must return nothing; it writes into its last argument", name)
        return found

    def _written(self, name: str, what: str, values: Floats) -> None:
        if not np.isfinite(values).all():
            raise self.problem(f"{name} must fill all of {what} with finite numbers", name)

    def problem(self, text: str, function: str = "") -> SpecError:
        """Return the error of something in the file, with the line of a function where it is about one."""
        line = 0
        if function:
            line = self.functions[function].__code__.co_firstlineno
        return SpecError(f"{self.path.name}{f', line {line}' if line else ''}: {text}")

    def raised(self, error: Exception, name: str = "the file") -> SpecError:
        """Return the error of what a function of the file raised, compiled or not, with its line."""
        where, what = _line_of(self.path, error)
        place = f"{self.path.name}, line {where}" if where else self.path.name
        if type(error).__module__.startswith("numba"):
            return SpecError(f"{place}: {name} cannot be compiled: {what}")
        return SpecError(f"{place}: {name} raised {type(error).__name__}{f': {what}' if what else ''}")


def load_code(path: Path, *, allowed: bool) -> UserCode:
    """Run a Python file, and check by name that it defines a model.

    Parameters
    ----------
    path : Path
        The file that the spec names.
    allowed : bool
        Whether the user said that code of a spec may run.

    Raises
    ------
    SpecError
        When it may not run, cannot be read, raises (with its line), or lacks something, by name.
    """
    if not allowed:
        raise SpecError(
            f"model.file: {path.name} is Python code that would run on this machine; read it, and give "
            "--allow-code if you trust it"
        )
    try:
        text = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise SpecError(f"model.file: {path} cannot be read ({reason})") from None
    digest = sha256(text).hexdigest()
    name = f"dpmix_user_model_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"model.file: {path.name} is no Python file; its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        place = f"{path.name}, line {error.lineno}" if error.lineno else path.name
        raise SpecError(f"{place}: {error.msg}") from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        line, what = _line_of(path, error)
        raise SpecError(f"{path.name}, line {line}: {type(error).__name__}: {what}") from None
    return UserCode(path, digest, _model_class(path, module), module, _functions(path, module))


def _model_class(path: Path, module: ModuleType) -> type:
    found = getattr(module, "Model", None)
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise SpecError(f"{path.name}: lacks the class Model, a typing.NamedTuple of the hyperparameters")
    return found


def _functions(path: Path, module: ModuleType) -> dict[str, Callable[..., Any]]:
    for name in ("PARAMETERS", "WIDTH", "SIZE"):
        if not hasattr(module, name):
            meaning = {
                "PARAMETERS": "the names of the parameters with their lengths, such as {'beta': 3}",
                "WIDTH": "how many numbers a record has",
                "SIZE": "how many numbers the statistic has",
            }[name]
            raise SpecError(f"{path.name}: lacks {name}, {meaning}")
    found: dict[str, Callable[..., Any]] = {}
    for name, arguments in FUNCTIONS.items():
        function = getattr(module, name, None)
        wanted = f"{name}({', '.join(arguments)})"
        if not inspect.isfunction(function):
            raise SpecError(f"{path.name}: lacks the function {wanted}")
        if len(inspect.signature(function).parameters) != len(arguments):
            line = function.__code__.co_firstlineno
            raise SpecError(
                f"{path.name}, line {line}: {name} must take {len(arguments)} arguments: {wanted}"
            )
        found[name] = function
    return found


def _line_of(path: Path, error: BaseException) -> tuple[int, str]:
    """Return the line of a file that an error is about, 0 where there is none, and its reason in one line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = re.findall(rf'File "[^"]*{re.escape(path.name)}", line (\d+)', text)
    if lines:  # numba's account of what it could not compile
        return int(lines[-1]), _reason(text)
    frames: Sequence[Any] = traceback.extract_tb(error.__traceback__)
    # by name alone: what is compiled may stem from the same file in another folder
    own = [frame.lineno for frame in frames if Path(frame.filename).name == path.name]
    return (own[-1] or 0) if own else 0, _reason(text)


def _reason(text: str) -> str:
    """Return the most telling line of an error's text."""
    lines = [line.strip(" -") for line in text.splitlines()]
    lines = [
        line for line in lines if line and not line.startswith(("Failed in", "File ", "During:", "<source"))
    ]
    telling = [line for line in lines if any(word in line for word in _TELLING)]
    return (telling or lines or [""])[0][:200].rstrip(" :")
