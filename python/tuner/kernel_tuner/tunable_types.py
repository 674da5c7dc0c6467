"""The tunable names that choose the type of a scalar."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Dict, Iterator, List, Set, Tuple

from .signature import COMMENT, IDENTIFIER, Parameter, base_name, split_top

# Words that end an unnamed template parameter.
_UNNAMED = {"typename", "class", "bool", "char", "short", "int", "unsigned", "signed", "long", "size_t"}
_DEFINED = re.compile(r"\bdefined\s*\(?\s*\w+")


def choosers(parameter: Parameter, source: str, kernel_name: str, *, numbers: bool) -> Set[str]:
    """Returns the names on which the type of a parameter depends: those of its type, of the macros and aliases there, of
    conditions that choose between definitions of them, and of the arguments of the kernel's template.

    :param numbers: template parameters that are numbers count, too
    """
    text, defined = _definitions(source)
    template: Dict[str, Set[str]] = {}
    for declared, argument in _template_arguments(text, kernel_name):
        words = IDENTIFIER.findall(declared.split("=")[0])
        if words and words[-1] not in _UNNAMED and (numbers or words[0] in ("typename", "class")):
            template.setdefault(words[-1], set()).update(IDENTIFIER.findall(argument))
    found: Set[str] = set()
    more = set(IDENTIFIER.findall(parameter.text)[: -1 if parameter.name else None])
    while more:
        found |= more
        more = set().union(*(each.get(name, set()) for each in (defined, template) for name in more)) - found
    return found


# Included files may be long, and each scalar asks.
@lru_cache(maxsize=2)
def _definitions(source: str) -> Tuple[str, Dict[str, Set[str]]]:
    """Returns a source without comments, and by macro and alias the names in its bodies, and in the conditions between
    different ones."""
    text = COMMENT.sub(" ", source)
    bodies: Dict[str, Set[str]] = {}
    conditions: Dict[str, Set[str]] = {}
    for part, names in _conditional_parts(text):
        defined = re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S.*)$", part)
        defined += [(name, body) for body, name in re.findall(r"\btypedef\s+([^;{}]+?)(\w+)\s*;", part)]
        defined += re.findall(r"\busing\s+(\w+)\s*=([^;]+);", part)
        for name, body in defined:
            bodies.setdefault(name, set()).add(" ".join(body.split()))
            conditions.setdefault(name, set()).update(names)
    found = {name: set(IDENTIFIER.findall(" ".join(each))) for name, each in bodies.items()}
    for name, each in bodies.items():
        if len(each) > 1:
            found[name] |= conditions[name]
    return text, found


def _conditional_parts(text: str) -> Iterator[Tuple[str, Set[str]]]:
    """Yields the parts of a text between conditional directives, with the names in the conditions around each."""
    stack: List[Set[str]] = []
    part = ""
    for line in text.replace("\\\n", " ").split("\n"):
        directive = re.match(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if directive is None:
            part += line + "\n"
            continue
        yield part, set().union(*stack)
        part = ""
        # A tunable name is defined in each configuration: what only tests that does not depend on its value.
        names = set(IDENTIFIER.findall(_DEFINED.sub(" ", directive[2]))) if directive[1] in ("if", "elif") else set()
        if directive[1].startswith("if"):
            stack.append(names)
        elif directive[1] == "endif":
            del stack[-1:]
        elif stack:
            stack[-1] = stack[-1] | names
    yield part, set().union(*stack)


def _template_arguments(text: str, kernel_name: str) -> List[Tuple[str, str]]:
    """Returns the parameters of the kernel's template, each with its argument in the kernel's name."""
    given = split_top(kernel_name.partition("<")[2].rpartition(">")[0])
    declared: List[str] = []
    head = re.compile(rf"[^;{{]*?\b{re.escape(base_name(kernel_name))}\s*\(")
    for at in re.finditer(r"\btemplate\s*<", text):
        end = _closing(text, at.end())
        # A definition follows its declarations.
        if head.match(text, end + 1) is not None:
            declared = split_top(text[at.end() : end])
    pairs = []
    for place, each in enumerate(declared):
        argument = ",".join(given[place:]) if "..." in each else "".join(given[place : place + 1])
        # One that is not given is its default, which may name those before it.
        pairs.append((each, argument if argument.strip() else each.partition("=")[2]))
    return pairs


def _closing(text: str, at: int) -> int:
    """Returns the place of the bracket that closes the list of a template that begins at `at`."""
    depth, angle = 0, 1
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        # In parentheses they compare.
        angle += {"<": 1, ">": -1}.get(text[place], 0) if depth == 0 else 0
        if angle == 0:
            return place
    return len(text)
