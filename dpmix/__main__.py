"""``python -m dpmix`` is the ``dpmix`` command."""

from dpmix.cli.commands import main

main()
