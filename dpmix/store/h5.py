"""HDF5 as every dpmix file uses it: the only module that imports h5py.

`create` and `work` write a file, `reading` reads it or parts of it; whole files as plain trees are those of
`dpmix.store.tree`.

Every dataset has a dimension scale attached to each of its dimensions, and there is no variable-length data.
Strings in datasets are arrays of characters, in UTF-8, as in netCDF: `xarray.open_datatree` with either of
its engines, netCDF4 and h5netcdf, ArviZ and both libraries open the files as they are, and read text.
(Strings of fixed length, as files of earlier versions have, are bytes to one engine or an error to the
other.) Their last dimension is a dimension alone, ``string8``, which `names` leaves out.

Files use the HDF5 1.8 format: attributes of more than 64 KB (a long spec) go to dense storage, and a file
that was being written when the power failed is not locked.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpmix.errors import DataError
from dpmix.spec.limits import MOST_PER_BYTE, MOST_VALUES, ROOM
from dpmix.store.atomic import fsync, reason, replacing

# How much a file may unpack to, by its size on the disk.


class Room:
    """What a file that is read may unpack to.

    Places that were never written take no room in a file, and are read as any number of fill values.

    Parameters
    ----------
    name : str
        The file.
    size : int
        Its bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._seen: set[str] = set()
        self._total = 0

    def check(self, raw: Any, whole: bool) -> None:
        """Refuse, before it is read, a dataset that what is stored of it cannot unpack to.

        Raises
        ------
        DataError
            Naming the file and the dataset; also when it has too many values to read as a whole, when all
            datasets together are more than the file can hold, and for values of varying length.
        """
        count = math.prod(raw.shape or ())
        if whole and count > MOST_VALUES:
            raise DataError(
                f"{self._name} has {count:,} values in {raw.name}; at most {MOST_VALUES:,} are read"
            )
        if raw.name in self._seen:
            return
        if raw.dtype.kind == "O":
            raise DataError(f"{self._name} has values of varying length in {raw.name}, which are not read")
        size, stored = count * raw.dtype.itemsize, min(raw.id.get_storage_size(), self._size)
        self._total += size
        for held, bytes_ in ((size, stored), (self._total, self._size)):
            if held > ROOM + MOST_PER_BYTE * bytes_:
                raise DataError(
                    f"{self._name} is damaged: {raw.name} has {count:,} values, more than its {stored:,} "
                    f"bytes in this file of {self._size:,} can hold"
                )
        self._seen.add(raw.name)


# A file that HDF5 writes to without ever seeing an error.
#
# When the disk is full HDF5 cannot close a file any more, and takes the process down in the end. So it is
# given a file object that keeps the first error, and from then on what cannot be written in memory, until its
# owner looks at the error and gives the file up.


class Sink(io.RawIOBase):
    """A new file at `path`, an older one replaced; `error` is the first that writing met, or None.

    Errors name `named`, which it is to become, where that is another.

    Raises
    ------
    OSError
        When it cannot be opened.
    """

    def __init__(self, path: Path, named: Path | None = None) -> None:
        self.path, self.named = path, named or path
        self.error: OSError | None = None
        self._file = path.open("w+b", buffering=0)
        self._at = 0
        self._kept: list[tuple[int, bytes]] = []

    def __repr__(self) -> str:
        """Name the file within HDF5, which takes ASCII only."""
        return f"sink-{id(self)}"

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end()}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the offset."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what was written, whether it reached the disk or not."""
        view = memoryview(buffer).cast("B")
        self._file.seek(self._at)
        done = 0
        while done < len(view):
            count = self._file.readinto(view[done:])
            if not count:
                break
            done += count
        for start, data in self._kept:
            low, high = max(start, self._at), min(start + len(data), self._at + len(view))
            if low < high:
                view[low - self._at : high - self._at] = data[low - start : high - start]
                done = max(done, high - self._at)
        self._at += done
        return done

    def write(self, data: Any) -> int:
        """Write, or keep what cannot be written."""
        view = memoryview(data).cast("B")
        done = 0
        if self.error is None:
            try:
                self._file.seek(self._at)
                while done < len(view):
                    done += self._file.write(view[done:])
            except OSError as error:
                self.error = error
        if done < len(view):
            self._kept.append((self._at + done, bytes(view[done:])))
        self._at += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        length = self._at if size is None else size
        if self.error is None:
            try:
                self._file.truncate(length)
            except OSError as error:
                self.error = error
        return length

    def flush(self) -> None:
        """Do nothing: nothing is buffered here."""

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or error
        super().close()

    def _end(self) -> int:
        return max([self._file.seek(0, io.SEEK_END), *(start + len(data) for start, data in self._kept)])


# How arrays and strings look inside a file: characters of UTF-8, no booleans, chunk shapes.

Array = NDArray[Any]
_CHUNK_BYTES = 1 << 18


def utf8(length: int) -> np.dtype[Any]:
    """Return the type of UTF-8 strings of `length` bytes (the metadata is what h5py goes by)."""
    return np.dtype(f"S{length}", metadata={"h5py_encoding": "utf-8"})


def encode(array: Array) -> Array:
    """Return the array as it is stored: booleans as int8, strings as fixed-length UTF-8.

    Raises
    ------
    TypeError
        For objects, dates, complex numbers and other types without a place in the files.
    """
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "U":
        data = np.char.encode(array, "utf-8")
        return data.astype(utf8(max(1, data.dtype.itemsize)))
    if array.dtype.kind not in "iuf":
        raise TypeError(f"arrays of {array.dtype} cannot be stored")
    return array


def characters(strings: Array) -> Array:
    """Return fixed-length strings as their characters, along one more dimension, the last."""
    length = strings.dtype.itemsize
    found = np.frombuffer(strings.tobytes(), dtype="S1").reshape(*strings.shape, length)
    return found.astype(utf8(1))


def joined(found: Array) -> Array:
    """Return characters as the strings that they are along the last dimension."""
    length = found.shape[-1]
    if not length:
        return np.zeros(found.shape[:-1], dtype="S1")
    return np.ascontiguousarray(found).view(f"S{length}").reshape(found.shape[:-1])


def decode(array: Array) -> Array:
    """Return stored strings as `str`, other arrays as they are."""
    if array.dtype.kind == "S":
        return np.asarray(np.char.decode(array, "utf-8"))
    return array


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return a chunk of about 256 KB that runs along the last dimensions."""
    room = max(1, _CHUNK_BYTES // max(1, itemsize))
    chunk = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        chunk[axis] = max(1, min(room, shape[axis]))
        room = max(1, room // chunk[axis])
    return tuple(chunk)


Attribute: TypeAlias = str | bool | int | float | Array
_FORMAT = ("v108", "v108")
_MANY = 2**16  # places from which on they are counted in half the room
_CACHE = 2**20  # bytes of chunks kept of each dataset being written, row after row; HDF5 2 would keep 8 MB
_sinks: dict[str, Sink] = {}  # files being written, by the name that HDF5 knows them by
_NUMBER, _PLACES = "_Netcdf4Dimid", "_Netcdf4Coordinates"  # of a dimension, and those of what has several
_HIDDEN = frozenset(
    {
        *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"),
        *("_Encoding", "_FillValue", _NUMBER, _PLACES),
    }
)
_MEANING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "units")
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."  # as netCDF names such a scale


class Dataset:
    """A dataset of an open file: `shape`, `dims`, and NumPy indexing to read and write parts of it."""

    def __init__(self, raw: h5py.Dataset, room: Room | None = None) -> None:
        self._raw = raw
        self._room = room

    @property
    def shape(self) -> tuple[int, ...]:
        """Current length of each dimension."""
        return tuple(int(n) for n in self._raw.shape[: -1 if _has_characters(self._raw) else None])

    @property
    def kind(self) -> str:
        """Kind of its values, as NumPy's `dtype.kind`; ``S`` for strings."""
        with _guard(self._raw):
            return str(self._raw.dtype.kind)

    @property
    def dims(self) -> tuple[str, ...]:
        """Name of each dimension."""
        with _guard(self._raw):
            if self._raw.is_scale:
                return (_base_name(self._raw),)
            return tuple(_base_name(dim[0]) for dim in list(self._raw.dims)[: len(self.shape)])

    @property
    def attrs(self) -> dict[str, Attribute]:
        """Attributes, strings decoded, without those that HDF5 and netCDF keep for themselves."""
        return _read_attributes(self._raw)

    @property
    def conventions(self) -> dict[str, Any]:
        """What netCDF's attributes say that its numbers stand for, those that it has."""
        with _guard(self._raw):
            found = {name: self._raw.attrs[name] for name in _MEANING if name in self._raw.attrs}
        return {
            name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for name, value in found.items()
        }

    def __getitem__(self, selection: Any) -> Array:
        """Read the selected part as a NumPy array (strings as `str` arrays).

        Raises
        ------
        DataError
            When the file is damaged there, or would unpack to more than it can hold.
        """
        with _guard(self._raw):
            if self._room is not None:
                self._room.check(self._raw, isinstance(selection, tuple) and not selection)
            found = np.asarray(self._raw[selection])
            return decode(joined(found) if _has_characters(self._raw) else found)

    def numbers(self, selection: Any = ()) -> NDArray[np.float64]:
        """Read the selected part as numbers.

        Raises
        ------
        DataError
            When the file is damaged there, or holds something else.
        """
        found = self[selection]
        if found.dtype.kind not in "biuf":
            raise DataError(f"{_name(self._raw)} is damaged: its {self._raw.name} does not hold numbers")
        return np.asarray(found, dtype=np.float64)

    def __setitem__(self, selection: Any, values: ArrayLike) -> None:
        """Write `values` into the selected part, which must lie inside `shape`."""
        with _guard(self._raw):
            self._raw[selection] = values


class Group:
    """A group of an open file.

    Dimensions belong to the group where `coordinate` made them and serve its subgroups too.
    """

    def __init__(self, raw: h5py.Group, room: Room | None = None) -> None:
        self._raw = raw
        self._room = room

    @property
    def attrs(self) -> dict[str, Attribute]:
        """Attributes of the group, strings decoded (a copy: use `set_attrs` to write)."""
        return _read_attributes(self._raw)

    def set_attrs(self, attrs: Mapping[str, Attribute]) -> None:
        """Write attributes: strings (of any length, not empty), numbers, booleans (as int8), number arrays.

        Raises
        ------
        TypeError
            For a value of another kind; nested data goes in as a JSON string.
        """
        _write_attributes(self._raw, attrs)

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the datasets and those of the subgroups."""
        with _guard(self._raw):
            groups = tuple(k for k, v in self._raw.items() if isinstance(v, h5py.Group))
            return tuple(k for k, v in self._raw.items() if k not in groups and not _is_length(v)), groups

    def group(self, name: str) -> Group:
        """Return the subgroup `name`, made if it is not there and the file is being written.

        Raises
        ------
        DataError
            When the file is open for reading and has no such group.
        """
        with _guard(self._raw):
            if name in self._raw:
                return Group(self._raw[name], self._room)
            if self._raw.file.mode == "r":
                raise DataError(f"{_name(self._raw)} has no group {name!r}; is it a file of another kind?")
            return Group(self._raw.create_group(name, track_order=True))

    def __getitem__(self, name: str) -> Dataset:
        """Return the dataset `name` of this group.

        Raises
        ------
        DataError
            When there is no such dataset.
        """
        with _guard(self._raw):
            if name in self._raw and isinstance(self._raw[name], h5py.Dataset):
                return Dataset(self._raw[name], self._room)
            where = f"{self._raw.name.rstrip('/')}/{name}"
            raise DataError(f"{_name(self._raw)} has no dataset {where!r}; is it a file of another kind?")

    def __contains__(self, name: str) -> bool:
        """Say whether a dataset or subgroup of that name is there."""
        return name in self._raw

    def coordinate(
        self, dim: str, values: ArrayLike | int, *, attrs: Mapping[str, Attribute] | None = None
    ) -> Dataset:
        """Make the dimension `dim`, and the dataset of that name with its coordinate values.

        These are one-dimensional; an int n stands for 0, 1, .., n - 1.
        """
        data = encode(_places(values) if isinstance(values, int) else np.asarray(values))
        if data.ndim != 1:
            raise ValueError(f"the coordinate {dim!r} must have one dimension, not {data.ndim}")
        text = data.dtype.kind == "S"
        with _guard(self._raw):
            length = self._length(data.dtype.itemsize) if text else None
            raw = self._raw.create_dataset(dim, data=characters(data) if text else data)
            raw.make_scale(dim)
            number = _numbered(raw)
            if length is not None:
                raw.attrs.create(_PLACES, np.array([number, length.attrs[_NUMBER]], dtype=np.int32))
                _mark_encoding(raw)
            _write_attributes(raw, attrs or {})
            return Dataset(raw)

    def dataset(
        self,
        name: str,
        data: ArrayLike | None = None,
        dims: Sequence[str] = (),
        *,
        dtype: DTypeLike | None = None,
        compression: int = 0,
        chunks: tuple[int, ...] | None = None,
        attrs: Mapping[str, Attribute] | None = None,
    ) -> Dataset:
        """Make a dataset over dimensions that exist already (here or in a group above).

        Parameters
        ----------
        name : str
            Name of the dataset.
        data : array-like, optional
            Its values, of the shape of `dims`. Without them the dataset has that shape, the given `dtype`,
            and holds NaN (floats) or -1 (integers) until it is written; parts never written take no room in
            the file. Floats carry NaN as `_FillValue` too; integers do not, so that xarray keeps them
            integers.
        dims : sequence of str
            Names of its dimensions.
        dtype : data type, optional
            Needed without `data`; with it, the type stored.
        compression : int
            zlib level, 0 (none) to 9; shuffled first.
        chunks : tuple of int, optional
            Chunk shape; chosen (about 256 KB, along the last dimensions) where one is needed.
        attrs : mapping, optional
            Attributes such as units.

        Raises
        ------
        ValueError
            When a dimension does not exist or `data` does not have its length.
        """
        scales = [self._scale(dim, name) for dim in dims]
        shape = tuple(int(scale.shape[0]) for scale in scales)
        if data is None and dtype is None:
            raise ValueError(f"the dataset {name!r} needs data or a dtype")
        values = None if data is None else encode(np.asarray(data, dtype=dtype))
        if values is not None and values.shape != shape:
            raise ValueError(f"the dataset {name!r} has shape {values.shape}, but {tuple(dims)} have {shape}")
        if values is not None and values.dtype.kind == "S":
            with _guard(self._raw):
                scales.append(self._length(values.dtype.itemsize))
            values = characters(values)
            shape = values.shape
        kind = np.dtype(dtype) if values is None else values.dtype
        options: dict[str, Any] = {}
        if shape and (compression or chunks or values is None):
            options["chunks"] = chunks or chunk_shape(shape, kind.itemsize)
            options["maxshape"] = shape
        if shape and compression:
            options |= {"compression": "gzip", "compression_opts": compression, "shuffle": True}
        if kind.kind in "fi":
            options["fillvalue"] = np.array(np.nan if kind.kind == "f" else -1, dtype=kind)[()]
        with _guard(self._raw):
            raw = self._raw.create_dataset(name, shape=shape, dtype=kind, data=values, **options)
            for axis, scale in zip(raw.dims, scales, strict=True):
                axis.attach_scale(scale)
            if kind.kind == "f":
                raw.attrs.create("_FillValue", options["fillvalue"])
            _mark_encoding(raw)
            _write_attributes(raw, attrs or {})
            return Dataset(raw)

    def flush(self) -> None:
        """Bring everything written so far to the disk."""
        with _guard(self._raw):
            self._raw.file.flush()
            fsync(Path(_name(self._raw)))

    def _length(self, length: int) -> h5py.Dataset:
        """Return the dimension of this group that the characters of strings of a length run along."""
        name = f"string{length}"
        while name in self._raw and not (_is_length(self._raw[name]) and self._raw[name].shape == (length,)):
            name += "_"
        if name not in self._raw:
            raw = self._raw.create_dataset(name, shape=(length,), dtype=np.int8)
            raw.make_scale(f"{_NO_VARIABLE} {length:9d}")
            _numbered(raw)
        return self._raw[name]

    def _scale(self, dim: str, name: str) -> h5py.Dataset:
        group = self._raw
        while True:
            if dim in group and isinstance(group[dim], h5py.Dataset) and group[dim].is_scale:
                return group[dim]
            if group.name == "/":
                raise ValueError(f"{name!r} uses the dimension {dim!r}, which has no coordinate yet")
            group = group.parent


@contextlib.contextmanager
def create(path: str | Path, *, force: bool = False) -> Iterator[Group]:
    """Write a new file that appears, complete, only when the block ends without an error.

    It is written under another name in the same directory, brought to the disk, and renamed; when the block
    raises, nothing is left.

    Raises
    ------
    UsageError
        When `path` exists and `force` is not given.
    DataError
        When the file cannot be written.
    """
    with replacing(path, force=force) as temporary, work(temporary, Path(path)) as root:
        yield root


@contextlib.contextmanager
def work(path: str | Path, named: Path | None = None) -> Iterator[Group]:
    """Write a new file in place; an older one of that name is replaced.

    Errors name `named`, which it is to become, where that is another.

    The file stays whatever happens in the block; what was written before the last `Group.flush` survives
    the end of the process.

    Raises
    ------
    DataError
        When the file cannot be written.
    """
    try:
        sink = Sink(Path(path), named)
    except OSError as error:
        raise DataError(f"cannot write {named or path}: {reason(error)}") from error
    _sinks[repr(sink)] = sink
    try:
        with sink, h5py.File(sink, "w", libver=_FORMAT, track_order=True, rdcc_nbytes=_CACHE) as file:
            yield Group(file)
    finally:
        del _sinks[repr(sink)]
        if sink.error is not None:
            raise DataError(f"cannot write {sink.named}: {reason(sink.error)}") from sink.error


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[Group]:
    """Open a file for reading parts of it.

    Raises
    ------
    DataError
        When the file is missing, not HDF5, truncated or damaged (also when that shows inside the block).
    """
    _check_hdf5(Path(path))
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError, KeyError) as error:
        raise DataError(f"{path} is damaged or truncated: {reason(error)}") from error
    with file:
        yield Group(file, Room(str(path), Path(path).stat().st_size))


@contextlib.contextmanager
def _guard(raw: h5py.HLObject) -> Iterator[None]:
    """Turn HDF5's own errors into a DataError that names the file."""
    file = raw.file
    name, reads = _name(raw), file.mode == "r"
    # flipped bytes surface as any of these, in h5py as well as in HDF5 itself
    damage = (TypeError, ValueError, MemoryError, OverflowError) if reads else ()
    sink = _sinks.get(file.filename)
    try:
        yield
        if sink is not None and sink.error is not None:
            raise sink.error
    except (OSError, RuntimeError, KeyError, *damage) as error:
        what = (
            f"{name} is damaged or truncated"
            if reads
            else f"cannot write {name if sink is None else sink.named}"
        )
        raise DataError(f"{what}: {reason(error)}") from error


def _name(raw: h5py.HLObject) -> str:
    name = str(raw.file.filename)
    return str(_sinks[name].path) if name in _sinks else name


def _write_attributes(raw: h5py.HLObject, attrs: Mapping[str, Attribute]) -> None:
    for name, value in attrs.items():
        if isinstance(value, str):
            data = value.encode()
            if not data or b"\0" in data:
                raise ValueError(f"the attribute {name!r} must be neither empty nor hold a zero character")
            kind = utf8(len(data))
            raw.attrs.create(name, np.array(data, dtype=kind), dtype=kind)
            continue
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"the attribute {name!r} must be a string, a number or an array of numbers")
        raw.attrs.create(name, array.astype(np.int8) if array.dtype.kind == "b" else array)


def _read_attributes(raw: h5py.HLObject) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    with _guard(raw):
        for name in raw.attrs:
            if name not in _HIDDEN:
                value = raw.attrs[name]
                found[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


def _mark_encoding(raw: h5py.Dataset) -> None:
    if raw.dtype.kind == "S":
        _write_attributes(raw, {"_Encoding": "utf-8"})


def _is_length(raw: h5py.HLObject) -> bool:
    """Whether this is a dimension that characters run along, and nothing more."""
    name = raw.attrs.get("NAME") if isinstance(raw, h5py.Dataset) else None
    return isinstance(name, bytes) and name.startswith(_NO_VARIABLE.encode())


def _has_characters(raw: h5py.Dataset) -> bool:
    """Whether the last dimension is that of characters; in files of earlier versions it is none."""
    if raw.dtype.kind != "S" or raw.dtype.itemsize != 1 or not raw.shape:
        return False
    if raw.is_scale:
        return len(raw.shape) == 2
    last = raw.dims[len(raw.shape) - 1]
    return len(last) > 0 and _is_length(last[0])


def _numbered(scale: h5py.Dataset) -> int:
    """Give a dimension its number, which netCDF needs where a coordinate has two of them; return it."""
    taken: list[int] = []

    def look(_: str, item: h5py.HLObject) -> None:
        if _NUMBER in item.attrs:
            taken.append(int(item.attrs[_NUMBER]))

    scale.file.visititems(look)
    number = max(taken, default=-1) + 1
    scale.attrs.create(_NUMBER, np.int32(number))
    return number


def _base_name(raw: h5py.Dataset) -> str:
    return str(raw.name).rsplit("/", 1)[-1]


def _check_hdf5(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.is_dir():
        raise DataError(f"{path} is a directory, not an HDF5 file")
    try:
        with path.open("rb") as stream:
            signature = stream.read(8)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    if signature != b"\x89HDF\r\n\x1a\n":
        raise DataError(f"{path} is not an HDF5 file, as releases, chains and summaries of dpmix are")


def _places(n: int) -> Array:
    """Return 0, 1, .., n - 1."""
    return np.arange(n, dtype=np.int32 if _MANY < n < 2**31 else np.int64)
