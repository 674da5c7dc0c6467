"""Text from outside stays text: one nasty string as every name and value, in every output."""

import codecs
import html.parser

import tuner
from tuner._errors import error_from
from tuner._results import Results
from tuner._text import visible
from tuner.kernel_tuner import util
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
