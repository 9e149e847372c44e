"""Reading and writing of specs as YAML: round trips, the scalars of YAML 1.2, and malformed input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmix.errors import DpmixError, SpecError
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.yamltext import MAX_BYTES, dump_yaml, parse_yaml
from tests.helpers.specs import ROOT, SHIPPED, full_spec

positive = st.floats(1e-300, 1e300)
finite = st.floats(allow_nan=False, allow_infinity=False)


def refusal(function: Callable[[Any], Any], argument: Any) -> str:
    """Return what a function refuses its argument with, or nothing; other errors than ours pass through."""
    try:
        function(argument)
    except DpmixError as error:
        return str(error)
    return ""


@st.composite
def specs(draw: Any) -> dict[str, Any]:
    """Draw contents of valid specs."""
    source = full_spec()
    lo, hi = draw(
        st.tuples(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)).filter(lambda p: p[1] - p[0] > 1e-100)
    )
    columns = draw(st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True))
    source["data"] = {"path": "x.csv", "columns": columns, "domain": [[lo, hi]] * len(columns)}
    noise = draw(
        st.sampled_from(
            [("laplace", "epsilon"), ("laplace", "rho"), ("gaussian", "rho"), ("gaussian", "scale")]
        )
    )
    source["mechanism"] = {"kind": noise[0], noise[1]: draw(positive)}
    source["model"]["base"] = draw(
        st.one_of(
            st.just({"empirical": True}),
            st.fixed_dictionaries({"mu0": finite, "lambda": positive, "a": positive, "b": positive}),
        )
    )
    source["model"]["discount"] = draw(st.floats(0, 1, exclude_max=True))
    source["model"]["concentration"] = draw(
        st.one_of(positive, st.fixed_dictionaries({"shape": positive, "rate": positive}))
    )
    source["sampler"]["seed"] = draw(st.one_of(st.none(), st.integers(0, 2**63 - 1)))
    source["sampler"]["store"] = draw(st.sampled_from([None, [], ["allocations"]]))
    source["summary"]["level"] = draw(st.floats(0, 1, exclude_min=True, exclude_max=True))
    return source


@given(specs())
@settings(deadline=None, max_examples=40)
def test_a_resolved_spec_reads_back_equal(source: dict[str, Any]) -> None:
    spec = load_spec(source)
    assert RunSpec.from_yaml(spec.to_yaml()) == spec
    analyst = spec.for_analyst()
    assert RunSpec.from_yaml(analyst.to_yaml()) == analyst


@pytest.mark.parametrize(
    "path", [*SHIPPED, *sorted((ROOT / "configs").glob("p*/*.yaml"))], ids=lambda path: path.stem
)
def test_a_resolved_shipped_spec_reads_back_equal(path: Path, tmp_path: Path) -> None:
    spec = load_spec(path)
    assert RunSpec.from_yaml(spec.for_analyst().to_yaml()) == spec.for_analyst()
    (tmp_path / "resolved.yaml").write_text(spec.to_yaml(), encoding="utf-8")
    again = load_spec(tmp_path / "resolved.yaml")
    assert again == spec
    assert hash(again) == hash(spec)
    assert load_spec(path, ["sampler.seed=99"]) != spec


scalars = st.one_of(st.none(), st.booleans(), st.integers(), finite, st.text())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
@settings(deadline=None)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    read = parse_yaml(dump_yaml(value))
    assert read == value
    assert repr(read) == repr(value)


@given(st.text(alphabet=st.sampled_from("ab01:.-+e{}[],&*!|>'\"#%@`\t\n \\<?~_"), max_size=60))
@settings(deadline=None, max_examples=200)
def test_malformed_text_is_refused_in_one_sentence(text: str) -> None:
    said = refusal(parse_yaml, text)
    assert len(said.splitlines()) <= 1
    assert len(said) < 250


@given(
    st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8),
    st.sampled_from(["data", "release", "mechanism", "model", "sampler", "summary", "synthesis"]),
    st.sampled_from(["", "kind", "base", "path", "domain", "epsilon", "grid", "store", "concentration"]),
)
@settings(deadline=None, max_examples=150)
def test_nonsense_is_refused_by_our_own_errors(value: Any, section: str, key: str) -> None:
    source = full_spec()
    if key:
        source.setdefault(section, {})[key] = value
    else:
        source[section] = value
    said = refusal(load_spec, source)
    assert "pydantic" not in said
    assert all(line.startswith((section, "mechanism", "and ")) for line in said.splitlines())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1E5", 1e5),
        ("-1.5e+3", -1500.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("10_000", 10000),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("true", True),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("~", None),
        ("null", None),
        ("'1e5'", "1e5"),
        ("1.2.3", "1.2.3"),
        ("nan", "nan"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    read = parse_yaml(text)
    assert read == value
    assert type(read) is type(value)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 25))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", 'line 3: key "a" is given twice'),
        ("a:\n\tb: 1\n", "line 2: a tab; indent with spaces"),
        ("a: [1\nb: 2\n", "line 2:"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document begins"),
        ("1: a\n", "line 1: key 1 is not text"),
        ("a: {true: 1}\n", "line 1: key true is not text"),
        ("? [1]\n: 2\n", "line 1: a key is not text"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: unknown tag"),
        ("a: !!int x\n", "a value does not fit its tag"),
        ("a: " + "9" * 5000, "a value does not fit its tag or is too long"),
        (BOMB, "its aliases expand to too much"),
        ("a: &a [*a]", "line 1: an alias contains itself"),
        ("[" * 5000, "line 1: nested more than 40 deep"),
        ("a: \x00", "special characters are not allowed (character 0x0000)"),
        ("a: 1\n" * MAX_BYTES, "longer than"),
    ],
)
def test_what_yaml_is_refused_with(text: str, expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, "x.yaml")
    assert str(caught.value).startswith(f"x.yaml: {expected}")


def test_aliases_and_merges_in_moderation_are_fine() -> None:
    text = "base: &b {mu0: 1, lambda: 2}\nother: {<<: *b, mu0: 3}\nagain: *b\n"
    assert parse_yaml(text) == {
        "base": {"mu0": 1, "lambda": 2},
        "other": {"mu0": 3, "lambda": 2},
        "again": {"mu0": 1, "lambda": 2},
    }


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "is empty"),
        (b"# nothing but a comment\n", "is empty"),
        (b"- 1\n- 2\n", "must be a mapping of keys"),
        (b"just text", "must be a mapping of keys"),
        (b"a: 1\nb: \xff\xfe\n", "line 2: not UTF-8 text"),
        (b"\xff\xfea\x00", "line 1: not UTF-8 text"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_files_that_hold_no_spec(raw: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(raw)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}: {expected}")


def test_a_table_in_the_place_of_a_spec_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,income\nAnna,45217\n")
    with pytest.raises(SpecError, match="name a spec") as caught:
        load_spec(path)
    assert "Anna" not in str(caught.value) and "income" not in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such spec file"):
        load_spec(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="a folder, not a spec file"):
        load_spec(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec("nul\0.yaml")


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfsampler: {chains: 2}\r\n")
    assert load_spec(path).sampler.chains == 2
