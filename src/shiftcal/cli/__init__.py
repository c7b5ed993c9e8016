"""The command line: :mod:`shiftcal.cli.main` and one file per command.

A command takes options and returns a :class:`~shiftcal.cli.output.Report`; only ``main`` prints.
What a command needs of the library is imported inside it, so that ``--help`` is quick.
"""
