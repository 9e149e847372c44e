"""The errors that dpmix raises on purpose, each with the exit code of the command line; and remarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


class DpmixError(Exception):
    """An error that the user can act on: one short message naming the key, file or value at fault.

    Attributes
    ----------
    exit_code : int
        What the command line exits with.
    """

    exit_code: int = 1


class SpecError(DpmixError):
    """A spec that cannot be read, has an unknown key, or asks for something that makes no sense."""

    exit_code = 2


class UsageError(DpmixError):
    """A command or function called in a way that cannot work, such as an output that exists already."""

    exit_code = 2


class DataError(DpmixError):
    """A file that cannot be read or written, or whose contents are not what they should be."""

    exit_code = 3


class PrivacyError(DpmixError):
    """A privacy request that cannot be met."""

    exit_code = 4


class SamplerError(DpmixError):
    """A sampler that failed, for instance at a state of zero density."""

    exit_code = 5


class ConvergenceError(DpmixError):
    """Chains that have not converged, where convergence was required.

    Attributes
    ----------
    result : Summary or Contrast
        What has been computed, and written, all the same: a summary or a comparison.
    """

    exit_code = 5

    def __init__(self, failures: Sequence[str], result: Any) -> None:
        more = len(failures) - 1
        rest = f" (and {more} more {'warning' if more == 1 else 'warnings'})" if more else ""
        super().__init__(f"{failures[0]}{rest}")
        self.result = result


class Interrupted(KeyboardInterrupt):
    """A run stopped by a signal after its state was saved; as Ctrl-C it is no `Exception`.

    A loop of fits that goes on after errors ends with it, then.
    """


def truth_of(given: object, name: str) -> bool:
    """Return the truth value that an argument of this name gives, whatever text such as "False" would be.

    Raises
    ------
    UsageError
        For anything but True and False, of Python or numpy, and 1 and 0.
    """
    if type(given).__name__ not in ("bool", "bool_") and not (isinstance(given, int) and given in (0, 1)):
        raise UsageError(f"{name}: must be True or False, not {type(given).__name__}")
    return bool(given)


def say(text: str, quiet: bool = False) -> None:
    """Tell the user on standard error something that is no data, unless `quiet`."""
    if not quiet:
        print(f"dpmix: {text}", file=sys.stderr)
