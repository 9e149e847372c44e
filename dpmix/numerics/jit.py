"""The one place that compiles: numba's options, the on-disk cache, and dispatch on NamedTuples."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast


@contextlib.contextmanager
def _absent(module: str) -> Iterator[None]:
    """Let a module that was not imported before look as if it were not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # means: cannot be imported
    try:
        yield
    finally:
        del sys.modules[module]


# a twentieth of what a fit takes to start, to note which lines are compiled
with _absent("coverage"):
    import numba

from numba.core import ir, types
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.errors import TypingError
from numba.core.event import Listener, install_listener
from numba.core.lowering import Lower
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import AbstractTemplate, _OverloadFunctionTemplate, infer_global
from numba.extending import overload

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

config: Any = numba.config

# numba's array functions import it, and all of scipy.linalg, to see whether inner products can be made by
# BLAS; ours are not, and np.dot and np.linalg look again when they are compiled
_BLAS = "scipy.linalg.cython_blas"

# holds no compiled code, so that changes there need no compiling
_NEVER_COMPILED = (
    "__init__.py",
    "__main__.py",
    "_version.py",
    "api",
    "auditing",
    "cli",
    "columns",
    "data",
    "errors.py",
    "laws",
    "numerics/equal_cells.py",
    "numerics/in_words.py",
    "privacy",
    "release",
    "report",
    "run",
    "spec",
    "store",
    "summary",
    "sweeping",
)
# folders whose compiled code no other one calls but those that name them: a change there leaves all else
# compiled
_ON_THEIR_OWN = {
    "mechanisms/posterior": ("mechanisms/posterior", "posteriors"),
    "models": ("models", "posteriors"),
    "posteriors": ("posteriors",),
    "synthesis": ("synthesis",),
}
Function = TypeVar("Function", bound=Callable[..., Any])
_JOINED: dict[Path, str] = {}  # files of others that compiled code depends on, and digests of them as read
_MADE: list[_Compiled] = []  # functions that have a dispatcher

# Functions that numba makes for compiled callers alone, and links into these: no code of their own.
#
# numba optimizes every function as it compiles it, makes machine code of it, and does so again in each caller
# that it is linked into. Functions that Python does not call need neither: two thirds of what a fit takes to
# compile. This reaches into numba's insides, and is used with the versions that it was tried with; with
# others numba's own way is taken, which makes the same numbers.

_TRIED = ((0, 68),)

_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What `numba.njit` is told of functions that Python does not call."""


def _can_link() -> bool:
    """Whether numba is of a version that this was tried with."""
    return numba.version_info.short in _TRIED


class _LinkedLibrary(JITCodeLibrary):
    """Code that is linked into other code as it is."""

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class _Borrowing(Lower):
    """Lowers a function that borrows its arguments, as its caller holds them anyhow until it returns.

    numba counts a reference to every array in them as a function begins and takes it back as it ends: of a
    state of twenty arrays, as long as a small function takes.
    """

    _entering = False

    def pre_lower(self) -> None:
        super().pre_lower()  # type: ignore[no-untyped-call]
        assigned = [one for block in self.blocks.values() for one in block.find_insts(ir.Assign)]
        names = [one.target.name for one in assigned]
        taken = {one.target.name for one in assigned if isinstance(one.value, ir.Arg)}
        self._borrowed = {name for name in taken if names.count(name) == 1}

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        self._entering = isinstance(inst.value, ir.Arg) and inst.target.name in self._borrowed
        try:
            return super().lower_assign(ty, inst)  # type: ignore[no-untyped-call]
        finally:
            self._entering = False

    def incref(self, typ: Any, val: Any) -> None:
        if not self._entering:
            super().incref(typ, val)  # type: ignore[no-untyped-call]

    def delvar(self, name: str) -> None:
        if name not in self._borrowed:
            super().delvar(name)  # type: ignore[no-untyped-call]


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _BorrowingPass(NativeLowering):
    _name = "native_lowering_borrowing"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Borrowing


class _Borrows(Compiler):
    """Compiles functions that borrow their arguments."""

    def define_pipelines(self) -> Any:
        found = super().define_pipelines()  # type: ignore[no-untyped-call]
        for manager in found:
            manager.passes = [
                (_BorrowingPass if step is NativeLowering else step, words) for step, words in manager.passes
            ]
        return found


class _Links(Compiler):
    """Compiles a function for compiled callers."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        state = self.state
        state.flags.no_compile = True
        state.library = _LinkedLibrary(state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        made = super().compile_extra(func)  # type: ignore[no-untyped-call]
        key = object().__format__  # a builtin, as numba wants it, and another each time
        state.targetctx.insert_user_function(key, made.fndesc, [made.library])
        return made._replace(entry_point=key)


class _Linked(_Links, _Borrows):
    """Compiles a function of ours for compiled callers."""


def _refuse_shapes(source: Any, index: Any) -> None:
    """Raise ValueError, as part of an array is to be set to one of another shape."""


@overload(_refuse_shapes, strict=False)
def _refusing_shapes(source: Any, index: Any) -> Any:
    def refuse(source: Any, index: Any) -> None:
        raise ValueError("part of an array cannot be set to an array of another shape")

    return refuse


@contextlib.contextmanager
def _numbas_own_linked() -> Iterator[None]:
    """Let what numba itself has in Python, as for arrays, be linked into what is compiled in the block.

    Its sentence about shapes has them written out, for which it compiles strings and what they are made of:
    half a second.
    """
    from numba.np import arrayobj  # of what numba gathers when it compiles

    template: Any = _OverloadFunctionTemplate
    before, refusing = template._get_jit_decorator, arrayobj.raise_with_shape_context

    def linking(self: Any) -> Callable[..., Any]:
        decorator = before(self)
        return lambda **options: decorator(**{**options, **_OPTIONS, "pipeline_class": _Links})

    template._get_jit_decorator, arrayobj.raise_with_shape_context = linking, _refuse_shapes
    try:
        yield
    finally:
        template._get_jit_decorator, arrayobj.raise_with_shape_context = before, refusing


class _Whole(_Borrows):
    """Compiles a function that Python calls, and all that it calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        with global_compiler_lock, _numbas_own_linked():
            made = super().compile_extra(func)  # type: ignore[no-untyped-call]
        for environment in made._find_referenced_environments():
            made.codegen.set_env(environment.env_name, environment)
        return made


def _make_callable(function: Callable[..., Any], resolve: Callable[..., Any]) -> None:
    """Let compiled callers of `function` call the compiled function that `resolve` finds for their types."""

    class Chosen(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            self._type = resolve(*args)._numba_type_
            return self._type.get_call_type(self.context, args, kws)

        def get_impl_key(self, sig: Any) -> Any:
            return self._type.get_overload(sig)

    infer_global(function, types.Function(Chosen))  # type: ignore[no-untyped-call]


@functools.cache
def _source_digest(own: str) -> str:
    """Digest of the sources that may be compiled: a changed kernel must not meet a stale sampler.

    numba checks a cached function against its own file only, so the cache directory carries this digest.
    `own` is the folder of `_ON_THEIR_OWN` that the function is in, or empty.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    others = (*_NEVER_COMPILED, *set(_ON_THEIR_OWN).difference(_ON_THEIR_OWN.get(own, ())))
    files = [
        path for path in root.rglob("*.py") if not _is_other(path.relative_to(root).as_posix(), others, own)
    ]
    for path in sorted(files):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    for path in sorted(_JOINED):
        digest.update(f"{path.name} {_JOINED[path]}".encode())
    return digest.hexdigest()[:16]


def join(*files: Path) -> None:
    """Let files that are not ours belong to the key of kept code: what they change is compiled anew.

    Functions that were used before go on with what they have, and keep what they compile from here on beside
    these files.
    """
    found = {path.resolve(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    if all(_JOINED.get(path) == digest for path, digest in found.items()):
        return
    _JOINED.update(found)
    _source_digest.cache_clear()
    _cache_directory.cache_clear()
    for function in _MADE:
        function.keep()


@functools.cache
def _cache_directory(own: str) -> str | None:
    """Return the first writable place for compiled code, or None when there is none."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [os.environ.get("DPMIX_CACHE_DIR"), config.CACHE_DIR, os.path.join(base, "dpmix")]
    user = os.getuid() if hasattr(os, "getuid") else "user"
    places.append(os.path.join(tempfile.gettempdir(), f"dpmix-cache-{user}"))
    for place in filter(None, places):
        directory = Path(place) / _source_digest(own)
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(directory, os.W_OK) and (not hasattr(os, "getuid") or directory.stat().st_uid == user):
            return str(directory)
    return None


def keeps_code() -> bool:
    """Return whether there is a place for compiled code."""
    return _cache_directory("") is not None


def _is_other(path: str, others: tuple[str, ...], own: str) -> bool:
    """Whether a file holds no code that is compiled with that of `own`; of mechanisms only channels do."""
    if any(path == other or path.startswith(f"{other}/") for other in others):
        return True
    parts = path.split("/")
    return parts[-1] in ("section.py", "base.py", "base_of_spec.py", "family.py", "layout.py") or (
        parts[0] == "mechanisms"
        and parts[1] != "channels"
        and parts[-1] != "channel.py"
        and not (own and path.startswith(f"{own}/"))
    )


def _package(module: str) -> str:
    """Return the folder of `_ON_THEIR_OWN` that a module is in, or an empty name."""
    path = "/".join(module.split(".")[1:])
    return next((own for own in _ON_THEIR_OWN if path.startswith(f"{own}/")), "")


@contextlib.contextmanager
def _cache_location(directory: str | None) -> Iterator[None]:
    """Point numba at our cache directory while the cache of one of our functions is made, and only then."""
    before = config.CACHE_DIR
    config.CACHE_DIR = directory or before
    try:
        yield
    finally:
        config.CACHE_DIR = before


class _Once(Listener):
    """Calls `say` when the first compilation begins."""

    def __init__(self, say: Callable[[], None]) -> None:
        self._say: Callable[[], None] | None = say

    def on_start(self, event: Any) -> None:
        say, self._say = self._say, None
        if say is not None:
            say()

    def on_end(self, event: Any) -> None:
        pass


@contextlib.contextmanager
def compiling(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` once when code is compiled in the block, and not where all of it was kept on disk."""
    with install_listener("numba:compile", _Once(say)):
        yield


class _Kept(FunctionCache):
    """The functions kept on disk, without what numba would read before it looks for one.

    numba first gathers all that it could compile with, twice as long as it takes to read a sampler. What was
    compiled before needs the run time of its arrays alone, and where nothing was kept the compiler gathers
    the rest by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with _absent(_BLAS), self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


class _Compiled:
    """A function that numba compiles: its dispatcher and cache are made when it is first used, as few are.

    A process that finds its loops on disk uses these alone of hundreds of functions.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._options = options

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The function as Python calls it."""
        function = self.__dict__["__wrapped__"]
        whole = {"pipeline_class": _Whole} if _can_link() else {}
        made: Any = numba.njit(**{**self._options, **whole})(function)
        self._keep(made)
        _MADE.append(self)
        return made

    def keep(self) -> None:
        """Keep code where it belongs now."""
        if not isinstance(self.dispatcher._cache, NullCache):
            self._keep(self.dispatcher)

    def _keep(self, made: Any) -> None:
        function = self.__dict__["__wrapped__"]
        directory = _cache_directory(_package(function.__module__))
        if directory is not None:
            try:
                with _cache_location(directory):
                    made._cache = _Kept(function)  # type: ignore[no-untyped-call]
            except (OSError, RuntimeError):  # as when the disk has filled up: work, and keep nothing
                made._cache = NullCache()

    @functools.cached_property
    def linked(self) -> Any:
        """The function as compiled callers have it."""
        if not _can_link():
            return self.dispatcher
        options = {**self._options, **_OPTIONS, "pipeline_class": _Linked}
        return numba.njit(**options)(self.__dict__["__wrapped__"])

    @property
    def _numba_type_(self) -> Any:
        """The type by which compiled callers know the function."""
        return self.linked._numba_type_

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


def _compiled(function: Function, **options: Any) -> Function:
    if config.DISABLE_JIT:
        return function
    return cast(Function, _Compiled(function, {"nogil": True, "error_model": "numpy", **options}))


def inlined(function: Function) -> Function:
    """Compile as `njit`, into every compiled caller: where a call costs as much as what it does."""
    return _compiled(function, forceinline=True)


def njit(function: Function) -> Function:
    """Compile without the interpreter lock and without division checks, cached on disk.

    No ``fastmath``: it breaks tests for infinities and NaN.
    """
    return _compiled(function)


def fresh_njit(function: Function) -> Function:
    """Compile as `njit` does, and keep nothing on disk: for code that is not ours.

    A place beyond the end of an array raises IndexError, where it would be written to memory of others.
    """
    return cast(Function, numba.njit(nogil=True, error_model="numpy", boundscheck=True)(function))


def keep_nothing(*functions: Callable[..., Any]) -> None:
    """Stop compiled functions from being kept on disk, from here on and in this process."""
    for function in functions:
        if isinstance(function, _Compiled):
            function.dispatcher._cache = NullCache()


def dispatch(on: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Make a function whose implementation is chosen by the NamedTuple classes of its first `on` arguments.

    The choice is made at compile time inside jitted code and by a dictionary look-up outside. Register an
    implementation with ``@function.register``; the classes are read from its annotations. What is registered
    is listed, by tuples of classes, in ``function.registered``.

    Raises
    ------
    TypeError
        When called for classes that nothing was registered for (``TypingError`` inside jitted code).
    """

    def decorate(stub: Callable[..., Any]) -> Any:
        impls: dict[tuple[type | None, ...], Callable[..., Any]] = {}

        def find(classes: tuple[type | None, ...]) -> Callable[..., Any] | None:
            return impls.get(classes)

        @functools.wraps(stub)
        def call(*args: Any) -> Any:
            impl = find(tuple(type(arg) for arg in args[:on]))
            if impl is None:
                names = ", ".join(type(arg).__name__ for arg in args[:on])
                raise TypeError(f"{stub.__name__}() is not defined for {names}")
            return impl(*args)

        def resolve(*args: Any) -> Any:
            impl = find(tuple(getattr(arg, "instance_class", None) for arg in args[:on]))
            if impl is None:
                raise TypingError(f"{stub.__name__}() is not defined for {args[:on]}")
            return impl

        def calling(*args: Any) -> Any:
            impl = resolve(*args)
            return lambda *args: impl(*args)

        if _can_link():
            _make_callable(call, resolve)
        else:
            overload(call, strict=False)(calling)

        def register(impl: Callable[..., Any], *classes: type, compiled: bool = True) -> Callable[..., Any]:
            """Register `impl` for `classes`, by default those its annotations name; it may be `inlined`.

            For a class that is no tuple it stays Python.
            """
            plain = impl.__dict__.get("__wrapped__", impl)
            named = classes or tuple(inspect.get_annotations(plain, eval_str=True).values())[:on]
            tuples = all(issubclass(one, tuple) for one in named)
            impls[named] = njit(impl) if compiled and tuples and plain is impl else impl
            return impl

        call.register = register  # type: ignore[attr-defined]
        call.registered = impls  # type: ignore[attr-defined]
        return call

    return decorate


def shuffled(rng: Generator, values: NDArray[Any]) -> NDArray[Any]:
    """Return `values` (K,) in random order: what ``rng.permutation`` returns, and soon compiled.

    numba's own takes any axis of any array, for which it compiles sets and sentences: two seconds.
    """
    return rng.permutation(values)


@overload(shuffled, strict=False)
def _shuffled(rng: Any, values: Any) -> Any:
    from numba.np.random import random_methods  # of what numba gathers when it compiles

    up_to: Any = random_methods.random_interval

    def draw(rng: Any, values: Any) -> Any:
        out = values.copy()
        for i in range(len(out) - 1, 0, -1):
            j = int(up_to(rng.bit_generator, i))
            out[i], out[j] = out[j], out[i]
        return out

    return draw
