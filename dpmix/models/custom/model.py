"""Models that users bring: data augmentation over a Python file's record, update, statistic and release.

The file is loaded, checked by name, tried out in the interpreter and compiled; what is wrong is said with its
line. What is compiled of it stays in the process.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import math
import random
import re
import sys
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DpmixError, SamplerError, SpecError, truth_of
from dpmix.models import sum_augmentation
from dpmix.models.custom.section import CustomModel
from dpmix.models.sum_augmentation import AugmentedChain, default_offers, make_tally
from dpmix.numerics.jit import fresh_njit, keep_nothing
from dpmix.run.model_protocols import Arrays, Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]
FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "draw_prior": ("model", "rng", "theta"),
    "draw_record": ("model", "rng", "theta", "record"),
    "draw_theta": ("model", "rng", "theta", "records"),
    "statistic": ("model", "released", "record", "out"),
    "log_release": ("model", "released", "sums"),
}
"""What a file defines, by name, and the arguments of each."""
_WRITTEN: Final = {
    "draw_prior": "theta",
    "draw_record": "record",
    "draw_theta": "theta",
    "statistic": "out",
}
_AGREEMENT = 1e-6
_TELLING = ("Untyped", "Unknown attribute", "No implementation", "annot ", "not defined", "Use of")

# The model and its chains


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
    if given.get("n") not in (None, release.n):
        raise SpecError(f"model.n: {given['n']}, but the release is of {release.n} records; leave it out")
    scales = release.scales
    known = {
        "n": release.n,
        "epsilon": release.epsilon,
        "scale": scales[0] if len(set(scales)) == 1 else (list(scales) or None),
    }
    model = code.hyperparameters(given, known)
    for key in ("epsilon", "scale"):
        if known[key] is not None and key in given and not _agree(getattr(model, key), known[key]):
            raise SpecError(
                f"model.{key}: {given[key]}, but the release was made with {known[key]}; leave it out, or "
                "call it otherwise in the class Model where it is another quantity"
            )
    values = np.array(release.values, dtype=np.float64, order="C")
    released = _fixed(values[:, 0].copy() if values.shape[1] == 1 else values)
    pure = release.epsilon is not None and math.isfinite(release.epsilon) and not release.delta
    return Custom(
        code,
        model,
        released,
        release.n,
        soma=spec.sampler.kind == "soma",
        bound=math.exp(-float(release.epsilon or 0.0)) if pure else math.nan,
    )


def _fixed(values: Floats) -> Floats:
    """Return an array of which compiled code refuses to change anything: it is of all chains."""
    values.flags.writeable = False
    return values


def _agree(given: float | Floats, known: Any) -> bool:
    """Whether numbers or lists are alike: noise is calibrated on a grid, a little above its formula."""
    one, other = np.ravel(given), np.ravel(known)
    alike = one.size == other.size or 1 in (one.size, other.size)
    return alike and bool(np.allclose(one, other, rtol=_AGREEMENT, atol=0.0))


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
    keeps_code = False

    def __init__(
        self, code: UserCode, model: Any, released: Floats, n: int, *, soma: bool, bound: float
    ) -> None:
        self.code, self.n, self.soma = code, n, soma
        self.acceptance_bound = bound
        self.sizes = code.sizes(model)
        self.width, self.size = code.number("WIDTH", model), code.number("SIZE", model)
        code.try_out(model, released, n)
        law, self.start = _law(code)
        self.law = law(model, released, *self.room())
        self.parameters = tuple(
            Parameter(name, (f"{name}_entry",) if count else ()) for name, count in self.sizes.items()
        )
        self.coords = {
            f"{name}_entry": np.arange(1, count + 1) for name, count in self.sizes.items() if count
        }
        self.constants = {"n": float(n)}
        self.attrs = {"code": code.path.name, "code_digest": code.digest}

    def room(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return room for what `log_release` returned wrongly, and copies of a record, sums and records."""
        return np.zeros(1), np.zeros(self.width), np.zeros(self.size), np.zeros((self.n, self.width))

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
        room = dict(zip(_ROOM, model.room(), strict=True))  # of this chain, whatever others do beside it
        law = model.law._replace(**room)
        with self._told():
            model.start(law, rng, theta, records)
            super().__init__(model, rng, law, theta, records, make_tally(model.size), offers)
        self._check_release()

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
        SamplerError
            When `log_release` returned what is no log density.
        """
        with self._told():
            super().sweep(count)
        self._check_release()

    def _check_release(self) -> None:
        """Refuse to go on by offers that were neither likely nor unlikely."""
        wrong = self.law.wrong[0]
        if wrong != 0.0:
            text = f"log_release returned {'NaN' if math.isnan(wrong) else 'inf'}"
            advice = "return a number, or -inf where the records cannot have given the release"
            raise SamplerError(str(self._code.problem(f"{text}; {advice}", "log_release")))

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


def _written_to(model: Any, released: Floats) -> tuple[Any, Floats]:
    """Return copies that can be written to: what was changed is then said by name."""
    return type(model)(
        *(part.copy() if isinstance(part, np.ndarray) else part for part in model)
    ), released.copy()


_ROOM: Final = ("wrong", "record", "sums", "records")
_LAWS: dict[tuple[str, str], tuple[type, Callable[..., None]]] = {}


def _law(code: UserCode) -> tuple[type, Callable[..., None]]:
    """Return the class that a file's functions are registered for, and what starts a chain.

    There is one class for each name and text of a file. What is compiled for it stays in this process: on
    disk it could be taken for that of another file.
    """
    key = code.path.name, code.digest
    if key in _LAWS:
        return _LAWS[key]
    prior, draw, update, part, level = (fresh_njit(code.functions[name]) for name in FUNCTIONS)
    law = cast(type, namedtuple(f"Law_{code.digest[:16]}", ["model", "released", *_ROOM]))

    def start(law: Any, rng: Any, theta: Any, records: Any) -> None:
        prior(law.model, rng, theta)
        for i in range(len(records)):
            draw(law.model, rng, theta, records[i])

    def draw_record(law: Any, rng: Any, theta: Any, record: Any) -> None:
        draw(law.model, rng, theta, record)

    # of copies, for what these functions are asked about stays as it is, also where they clamp in place
    def draw_theta(law: Any, rng: Any, theta: Any, records: Any, tally: Any) -> None:
        for i in range(len(records)):
            for j in range(records.shape[1]):
                law.records[i, j] = records[i, j]
        update(law.model, rng, theta, law.records[: len(records)])

    def statistic(law: Any, record: Any, out: Any) -> None:
        for j in range(len(record)):
            law.record[j] = record[j]
        part(law.model, law.released, law.record, out)

    def log_release(law: Any, sums: Any) -> Any:
        for j in range(len(sums)):
            law.sums[j] = sums[j]
        found = level(law.model, law.released, law.sums)
        if not found < math.inf:  # NaN or inf, which `CustomChain` looks for
            law.wrong[0] = found
        return found

    keep_nothing(*vars(sum_augmentation).values())
    for function in (draw_record, draw_theta, statistic, log_release):
        registered = getattr(sum_augmentation, function.__name__)
        registered.register(fresh_njit(function), law, compiled=False)
    sum_augmentation.by_statistic(law, fresh_njit)
    _LAWS[key] = law, fresh_njit(start)
    return _LAWS[key]


# The user's file


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
    if not truth_of(allowed, "allow_code"):
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
    code = UserCode(path, digest, _model_class(path, module), module, _functions(path, module))
    tree = ast.parse(text)
    _check_imports(path, tree)
    _check_randomness(path, module, tree)
    return code


def _model_class(path: Path, module: ModuleType) -> type:
    found = getattr(module, "Model", None)
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise SpecError(f"{path.name}: lacks the class Model, a typing.NamedTuple of the hyperparameters")
    return found


def _functions(path: Path, module: ModuleType) -> dict[str, Callable[..., Any]]:
    for name, meaning in (
        ("PARAMETERS", "the names of the parameters with their lengths, such as {'beta': 3}"),
        ("WIDTH", "how many numbers a record has"),
        ("SIZE", "how many numbers the statistic has"),
    ):
        if not hasattr(module, name):
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


def _check_imports(path: Path, tree: ast.Module) -> None:
    """Refuse modules that lie beside the file, or where it is run: a run is resumed by the file's text."""
    places = {path.resolve().parent, Path.cwd()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        else:
            continue
        for name in (name.partition(".")[0] for name in names if name.partition(".")[0] != "dpmix"):
            found = sys.modules.get(name)
            own = getattr(found, "__path__", None) or [getattr(found, "__file__", None)]
            if any(Path(each).resolve().parent in places for each in own if each is not None):
                raise SpecError(
                    f"{path.name}, line {node.lineno}: imports {name}, a file of its own, whose changes a "
                    f"resumed run would not see; put what it needs of it into {path.name}"
                )


def _check_randomness(path: Path, module: ModuleType, tree: ast.Module) -> None:
    """Refuse random numbers that are not the chain's, in the functions and in those of the file they call."""
    waiting = [(name, inspect.unwrap(getattr(module, name))) for name in FUNCTIONS]
    seen = {function.__code__ for _, function in waiting}
    for name, function in waiting:  # which grows
        known = {**vars(module), **inspect.getclosurevars(function).nonlocals}
        for node in _nodes_of(function, module, tree):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            found = _named(known, node)
            if _is_unseeded(found):
                raise SpecError(
                    f"{path.name}, line {node.lineno}: {name} draws from {ast.unparse(node)}, which no seed "
                    "of the spec reaches; draw from rng"
                )
            called = getattr(found, "py_func", found)  # of what numba compiles
            if inspect.isfunction(called) and called.__code__ not in seen:
                seen.add(called.__code__)
                waiting.append((ast.unparse(node), called))


def _nodes_of(function: Callable[..., Any], module: ModuleType, tree: ast.Module) -> Iterator[ast.AST]:
    """Return what stands in a function or lambda of the file; nothing of one from elsewhere."""
    code = function.__code__
    if code.co_filename != module.__file__:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            if first == code.co_firstlineno:
                yield from ast.walk(node)


def _named(known: Mapping[str, Any], node: ast.expr) -> Any:
    """Return what a name of the file stands for, or None."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return getattr(_named(known, node.value), node.attr, None) if isinstance(node, ast.Attribute) else None


def _is_unseeded(found: Any) -> bool:
    """Whether it is a generator that the process shares, its module, or a function of it."""
    owner = getattr(found, "__self__", found)
    return owner is np.random or owner is random or isinstance(owner, np.random.RandomState | random.Random)


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
        value = self._stated(name, model)
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
        value = self._stated("PARAMETERS", model)
        good = isinstance(value, Mapping) and value
        for name, count in dict(value).items() if good else ():
            whole = isinstance(count, int | np.integer) and not isinstance(count, bool) and count >= 0
            if not isinstance(name, str) or not name.isidentifier() or not whole:
                raise self.problem(
                    f"PARAMETERS: {name!r} must be a name with a whole number, its length (0: one number)"
                )
            taken = ("chain", "draw", "acceptance_rate", "log_likelihood", *(f"{one}_entry" for one in value))
            if name in taken:
                raise self.problem(f"PARAMETERS: {name} is taken by the chains file; choose another name")
        if not good:
            raise self.problem("PARAMETERS must map the name of each parameter to its length (0: one number)")
        return {name: int(count) for name, count in value.items()}

    def _stated(self, name: str, model: Any) -> Any:
        value = getattr(self.module, name)
        return self.call(name, value, model) if callable(value) else value

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the file.

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
        return value if isinstance(value, float) else _fixed(np.array(found, order="C"))

    def try_out(self, model: Any, released: Floats, n: int) -> None:
        """Call every function once as Python and once compiled, on a database of few records.

        Raises
        ------
        SpecError
            When one raises, does not compile, or returns or writes what it should not; with the line of the
            file where there is one.
        """
        self._trial(*_written_to(model, released), n, self.functions)
        self._trial(model, released, n, {name: fresh_njit(self.functions[name]) for name in FUNCTIONS})

    def _trial(
        self, model: Any, released: Floats, n: int, functions: Mapping[str, Callable[..., Any]]
    ) -> None:
        rng = np.random.default_rng(0)
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
            or not float(level) < math.inf
        ):
            raise self.problem(
                "log_release must return a number, the log density of the release, or -inf", "log_release"
            )
        self._step("draw_theta", functions, model, rng, theta, records)
        self._written("draw_theta", "theta", theta)

    def _step(self, name: str, functions: Mapping[str, Callable[..., Any]], *arguments: Any) -> Any:
        written = _WRITTEN.get(name, "")
        held = [
            (what, array, array.copy())
            for what, argument in zip(FUNCTIONS[name], arguments, strict=True)
            for array in (argument if what == "model" else (argument,))
            if isinstance(array, np.ndarray) and what != written
        ]
        found = self.call(name, functions[name], *arguments)
        does = f"it writes into {written}" if written else "it returns a number"
        for what, array, before in held:
            if not np.array_equal(array, before, equal_nan=True):
                kept = "they are" if what in ("records", "sums") else "it is"
                raise self.problem(f"{name} must leave {what} as {kept}; {does}", name)
        if written and found is not None:
            raise self.problem(f"{name} must return nothing; {does}", name)
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
            if "setitem" in str(error) and "readonly array" in str(error):
                what = "it may change neither released nor an array of model, which are of all chains"
            return SpecError(f"{place}: {name} cannot be compiled: {what}")
        return SpecError(f"{place}: {name} raised {type(error).__name__}{f': {what}' if what else ''}")


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
