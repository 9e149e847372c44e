"""Functions that numba makes for compiled callers alone, and links into these: no code of their own.

numba optimizes every function as it compiles it, makes machine code of it, and does so again in each caller
that it is linked into. Functions that Python does not call need neither: two thirds of what a fit takes to
compile. This reaches into numba's insides, and is used with the versions that it was tried with; with others
`dpmix.numerics.jit` does without, and makes the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typing.templates import AbstractTemplate, infer_global

__all__ = ["OPTIONS", "Linked", "Whole", "available", "make_callable"]

_TRIED = ((0, 68),)

OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What `numba.njit` is told of functions that Python does not call."""


def available() -> bool:
    """Whether numba is of a version that this was tried with."""
    return numba.version_info.short in _TRIED


class _Library(JITCodeLibrary):
    """Code that is linked into other code as it is."""

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class Linked(Compiler):
    """Compiles a function for compiled callers."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        state = self.state
        state.flags.no_compile = True
        state.library = _Library(state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        made = super().compile_extra(func)  # type: ignore[no-untyped-call]
        key = object().__format__  # a builtin, as numba wants it, and another each time
        state.targetctx.insert_user_function(key, made.fndesc, [made.library])
        return made._replace(entry_point=key)


class Whole(Compiler):
    """Compiles a function that Python calls, and all that it calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        made = super().compile_extra(func)  # type: ignore[no-untyped-call]
        for environment in made._find_referenced_environments():
            made.codegen.set_env(environment.env_name, environment)
        return made


def make_callable(function: Callable[..., Any], resolve: Callable[..., Any]) -> None:
    """Let compiled callers of `function` call the compiled function that `resolve` finds for their types."""

    class Chosen(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            self._type = resolve(*args)._numba_type_
            return self._type.get_call_type(self.context, args, kws)

        def get_impl_key(self, sig: Any) -> Any:
            return self._type.get_overload(sig)

    infer_global(function, types.Function(Chosen))  # type: ignore[no-untyped-call]
