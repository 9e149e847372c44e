"""What is read and written at most, so that no file, however small, takes more memory or time than stated."""

from __future__ import annotations

from typing import Final

MOST_RECORDS: Final = 100_000_000
"""Records of a data set or a release, confidential or synthetic."""

MOST_COUNTED: Final = 2_000_000_000
"""Records that a histogram may state to be of, of which none is read here."""

MOST_VALUES: Final = 10 * MOST_RECORDS
"""Numbers of a table, or of a dataset that is read as a whole: records times columns."""

MOST_PER_BYTE: Final = 1100
"""Bytes that one byte of an HDF5 file stands for: deflate reaches 1032."""

MOST_PER_BYTE_OF_TEXT: Final = 100
"""Bytes of text that one byte of a csv.gz file stands for; tables of numbers stay below 20."""

ROOM: Final = 1 << 24
"""Bytes of an HDF5 file that are unpacked whatever they were packed to."""

ROOM_OF_TEXT: Final = 1 << 22
"""The same of a csv.gz file, whose text takes longer to read."""

ONE_COLUMN, SEVERAL_COLUMNS = 100, 10
"""Cells of a numeric column of synthetic records where the spec does not say: of the only one, and of each of
several."""
