"""Text from outside stays text: one nasty string as every name and value, in every output."""

import ast
import codecs
import html.parser
import json
import os
import pathlib

import pytest

import tuner
from tuner._errors import error_from
from tuner._results import Results
from tuner._text import visible
from tuner.kernel_tuner import cache, file_utils, integration, limits, rows, util
from tuner.kernel_tuner.spelling import quoted

NASTY = (
    "=cmd|' /C calc'!A0 \"'`\\ */ /* // %s%n ${x} <script>alert(1)</script> & {{ \x1b[31m \x7f \x9b2J "
    "\u202e \u2066 \u2028 \ufeff\r\nFORGED\n#define FORGED 1\x00 \ud800" + "x" * 10_000
)


class Reader(html.parser.HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text.append(data)


def assert_one_visible_line(text):
    assert text.isprintable()
    assert "FORGED" in text


def test_every_hidden_character_is_escaped_and_nothing_else():
    assert visible("a b\tc") == "a b\\tc"
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert visible("größer ≤ µs") == "größer ≤ µs"
    assert_one_visible_line(visible(NASTY))


def test_a_table_of_results_holds_no_markup_of_its_rows():
    row = {"kernel": NASTY, "config": {NASTY: NASTY}, "verdict": NASTY, "time_us": 1.0, "timing": NASTY}
    results = Results([row, {**row, "time_us": 0.5}], device=NASTY)
    reader = Reader()
    reader.feed(results._repr_html_())
    assert reader.tags <= {"div", "p", "table", "tr", "th", "td", "svg", "polyline", "text"}
    assert "".join(reader.text).isprintable()
    assert_one_visible_line(repr(results))


def test_a_line_of_kernel_tuner_stays_one_line():
    assert_one_visible_line(util.get_config_string({NASTY: NASTY, "time": 1.0}, units={NASTY: NASTY}))


def test_an_error_shows_no_control_characters():
    error = error_from(f"error: {NASTY}.yaml:3:1: {NASTY}", 2)
    assert isinstance(error, tuner.InputError)
    for text in [str(error), error.message, error.file or ""]:
        assert all(character.isprintable() or character in "\n\t" for character in text)


def test_a_space_file_keeps_the_text_of_parameters():
    text = NASTY.replace("\ud800", "\U0001f600")
    assert codecs.decode(quoted(text)[1:-1], "unicode_escape") == text
    assert quoted(text).isascii() and quoted(text).isprintable()
    assert "\\U0001f600" in quoted(text)


# Functions of the package that print or write, and what holds their text.
OUTPUTS = {
    "cache.CacheFile.open": "test_files_of_results_hold_the_text_as_data",
    "cache._replace": "test_files_of_results_hold_the_text_as_data",
    "cache.store_cache": "test_files_of_results_hold_the_text_as_data",
    "cache.write_closed": "test_files_of_results_hold_the_text_as_data",
    "file_utils._write": "test_files_of_results_hold_the_text_as_data",
    "integration.create_device_targets": "test_a_header_of_targets_takes_names_and_values_of_macros_only",
    "integration.store_results": "test_files_of_results_hold_the_text_as_data",
    "rows.show_best": "test_what_is_printed_stays_on_its_lines",
    "limits.summarize": "test_files_of_results_hold_the_text_as_data",
    "references.find_device_name": "constants of the package",
    "session.Session.add": "test_a_line_of_kernel_tuner_stays_one_line",
    "space.Export._reference": "test_a_space_file_keeps_the_text_of_parameters",
    "space.Export._write_sources": "sources of the user, as they are",
    "space.Export.write": "test_a_space_file_keeps_the_text_of_parameters",
    "spelling.save_array": "numbers",
    "util.check_restrictions": "test_what_is_printed_stays_on_its_lines",
    "util.write_file": "a text of the caller, as it is",
}


def functions_that_write(path):
    """Names of the functions of a module that print, or write a file."""
    known = {"print", "write_text", "write_bytes", "dump", "save", "tofile"}

    def visit(node, names):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                yield from visit(child, [*names, child.name])
                continue
            if isinstance(child, ast.Call):
                called = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
                mode = [each.value for each in child.args if isinstance(each, ast.Constant)]
                if called in known or called == "open" and {"w", "a", "x"} & {*map(str, mode)}:
                    yield ".".join(names)
            yield from visit(child, names)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), [path.stem])


def test_every_function_that_writes_has_a_test_with_the_nasty_string():
    package = pathlib.Path(tuner.__file__).parent
    found = {name for path in package.rglob("*.py") for name in functions_that_write(path)}
    assert found == set(OUTPUTS)
    for test in OUTPUTS.values():
        assert " " in test or test == "numbers" or test in globals(), test


def assert_json(path, text):
    """Nothing is hidden in the file, and the text is whole in it."""
    written = path.read_text(encoding="utf-8")
    assert all(character.isprintable() or character == "\n" for character in written), path
    assert not any(line.startswith(("FORGED", "#define")) for line in written.splitlines())
    found = json.loads(written)
    assert text in json.dumps(found, ensure_ascii=False) or json.dumps(text)[1:-1] in json.dumps(found)
    return found


def test_files_of_results_hold_the_text_as_data(place, monkeypatch):
    row = {NASTY: NASTY, "time": 1.0, "timing": NASTY, "note": NASTY}
    params = {NASTY: [NASTY]}
    file = cache.CacheFile(place / "c", cache.header(NASTY, NASTY, params, [(NASTY, False)]))
    file.open(NASTY)
    file.store(row, params)
    file.close()
    written = assert_json(place / "c.json", NASTY)
    assert written["device_name"] == written["kernel_name"] == NASTY
    assert written["cache"][NASTY] == row
    # Opened and closed again.
    assert cache.read_cache(place / "c")["cache"] == written["cache"]
    cache.close_cache(place / "c")
    assert assert_json(place / "c.json", NASTY) == written
    assert_json(cache.write_closed(place / "w.json", written), NASTY)
    file_utils.store_output_file(place / "t4.json", [row], params)
    (result,) = assert_json(place / "t4.json", NASTY)["results"]
    assert result["configuration"] == {NASTY: NASTY}
    integration.store_results(str(place / "r.json"), NASTY, NASTY, params, NASTY, [row], {"device_name": NASTY}, objective="time")
    (record,) = assert_json(place / "r.json", NASTY)["data"]
    assert record["tunable_parameters"] == {NASTY: NASTY}
    monkeypatch.setenv(limits.SUMMARY, str(place / "s.json"))
    limits.summarize(NASTY, NASTY, [{"verdict": NASTY}], row, 1.0)
    assert assert_json(place / "s.json", NASTY)["best"] == row


@pytest.mark.parametrize(
    ("device", "name", "value"),
    [
        ("X\n#define system evil", "A", 1),
        (NASTY, "A", 1),
        ("X", "A\n", 1),
        ("X", "A(x) evil", 1),
        ("X", NASTY, 1),
        ("X", "A", "1\n#define system evil"),
        ("X", "A", "1 ??/"),
        ("X", "A", "1 \\"),
        ("X", "A", "1 \u2028 \x0b"),
        ("X", "A", NASTY),
    ],
)
def test_a_header_of_targets_takes_names_and_values_of_macros_only(place, device, name, value):
    integration.store_results("r.json", "k", "", {"A": [1]}, 1, [{"A": 1, "time": 1.0}], {"device_name": "X"}, objective="time")
    integration.create_device_targets("good.h", "r.json")
    assert "#ifdef TARGET_X\n#define A 1\n" in (place / "good.h").read_text()
    results = json.loads((place / "r.json").read_text())
    results["tunable_parameters"] = [name]
    results["data"][0].update(device_name=device, tunable_parameters={name: value})
    (place / "r.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match="correct the file of results") as caught:
        integration.create_device_targets("bad.h", "r.json")
    assert str(caught.value).isprintable()
    assert not (place / "bad.h").exists()


def test_what_is_printed_stays_on_its_lines(capsys):
    row = {NASTY: NASTY, "time": 1.0, "timing": NASTY}
    rows.show_best([row], [("time", False)], {NASTY: [NASTY]}, None, {}, False)
    util.check_restrictions([lambda params: False], {NASTY: NASTY}, True)
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 4 and "FORGED" in out
    assert all(character.isprintable() or character == "\n" for character in out)


@pytest.mark.parametrize("kernel", ["--help", "-V", f"--db={NASTY}"])
def test_a_kernel_that_is_an_option_is_refused(kernel):
    for call in (tuner.tune, tuner.check, tuner.predict):
        with pytest.raises(tuner.InputError, match="is an option, not a kernel"):
            call(kernel)
    with pytest.raises(tuner.InputError, match="is an option, not a kernel") as caught:
        tuner.load_results(kernel=kernel)
    assert str(caught.value).isprintable()


def test_a_value_of_a_configuration_names_no_other_parameter():
    assert tuner.format_config({"A": "pair<int,int>", "B": True}) == "A=pair<int,int>,B=true"
    for config in [{"A": "1,B=2"}, {"A": NASTY + ",B=2"}, {"A=1,B": 2}, {"A,B": 2}]:
        with pytest.raises(tuner.InputError, match="cannot be written") as caught:
            tuner.format_config(config)
        assert str(caught.value).isprintable()


def test_a_value_that_is_an_option_stays_a_value(space):
    for name in ("problem", "device"):
        with pytest.raises(tuner.InputError, match="--version"):
            tuner.check(space, **{name: "--version"})


def test_a_relative_data_folder_is_ignored(monkeypatch):
    monkeypatch.delenv(limits.DATABASE)
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert os.path.isabs(limits.database()) and "data/tuner" not in limits.database()
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert limits.database() == "/data/tuner/kernel_tuner.db"
