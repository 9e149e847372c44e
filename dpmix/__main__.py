"""``python -m dpmix`` is the ``dpmix`` command."""

from dpmix.cli import main

main()
