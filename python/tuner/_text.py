"""Text from outside, made safe for a terminal or a page."""

from __future__ import annotations


def visible(text: object, keep: str = "") -> str:
    """Returns the text with every character escaped that a terminal obeys or a reader cannot see.

    Line breaks, other control characters, bidirectional and zero-width marks become `\\n`, `\\x1b`,
    `\\u202e`. The characters of `keep` stay.
    """
    return "".join(
        character if character.isprintable() or character in keep else escaped(character) for character in str(text)
    )


def escaped(character: str) -> str:
    """Returns the escape of a character in Python, which is also that of YAML."""
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
