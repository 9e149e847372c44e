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
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import AbstractTemplate, infer_global

__all__ = ["OPTIONS", "Linked", "Whole", "available", "make_callable"]

_TRIED = ((0, 68),)

OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What `numba.njit` is told of functions that Python does not call."""


def available() -> bool:
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


class Linked(_Borrows):
    """Compiles a function for compiled callers."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        state = self.state
        state.flags.no_compile = True
        state.library = _LinkedLibrary(state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        made = super().compile_extra(func)  # type: ignore[no-untyped-call]
        key = object().__format__  # a builtin, as numba wants it, and another each time
        state.targetctx.insert_user_function(key, made.fndesc, [made.library])
        return made._replace(entry_point=key)


class Whole(_Borrows):
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
