"""Evaluation of functions of the parameters over a space, and their results as expressions.

A function that cannot be run with symbols is called with values. It records which parameters it reads,
in order: what it reads next depends only on what it has read, so its results form a decision tree. A
branch without a valid configuration is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

Params = Dict[str, Any]
#: Returns a valid configuration with the given values, or None if there is none.
Complete = Callable[[Params], Optional[Params]]
_MISSING = object()


class Reader(Dict[str, Any]):
    """A configuration that records the parameters whose values are read, in order."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        self.read: Dict[str, None] = {}

    def _read_all(self) -> None:
        self.read.update(dict.fromkeys(super().keys()))

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.read[name] = None
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def setdefault(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else super().setdefault(name, default)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        if name in self:
            self.read[name] = None
        return super().pop(name) if default is _MISSING else super().pop(name, default)

    # With its own `__iter__`, `dict(params)` and `**params` read value by value.
    def __iter__(self) -> Iterator[str]:
        return super().__iter__()



def _add_whole_reads() -> None:
    """Lets each operation that sees all values read all parameters."""
    names = ("items", "values", "copy", "popitem", "__eq__", "__ne__", "__or__", "__ror__", "__repr__", "__reduce_ex__")
    for name in names:
        plain = getattr(dict, name, None)
        if plain is None:
            continue

        def whole(self: Reader, *words: Any, plain: Any = plain) -> Any:
            self._read_all()
            return plain(self, *words)

        setattr(Reader, name, whole)


_add_whole_reads()


@dataclass
class Branch:
    """The results of a function by the value of a parameter; None where no configuration is valid."""

    name: str
    children: List[Tuple[Any, Optional["Tree"]]]


@dataclass
class Leaf:
    """A result that depends on no further parameter."""

    result: Any


Tree = Union[Branch, Leaf]


def grow(call: Callable[[Params], Any], tune_params: Mapping[str, Sequence[Any]], complete: Complete) -> Tree:
    """Evaluates a function for all valid configurations; raises ValueError if there is none."""

    def explore(fixed: Params) -> Optional[Tree]:
        config = complete(fixed)
        if config is None:
            return None
        reader = Reader(config)
        result = call(reader)
        return branch(fixed, [name for name in reader.read if name in config and name not in fixed], config, result)

    def branch(fixed: Params, read: List[str], config: Params, result: Any) -> Tree:
        if not read:
            return Leaf(result)
        name, *others = read
        at = list(tune_params[name]).index(config[name])
        children: List[Tuple[Any, Optional[Tree]]] = []
        for place, value in enumerate(tune_params[name]):
            chosen = {**fixed, name: value}
            children.append((value, branch(chosen, others, config, result) if place == at else explore(chosen)))
        return Branch(name, children)

    tree = explore({})
    if tree is None:
        raise ValueError("no configuration satisfies the restrictions; remove one, or add values to tune_params")
    return tree


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Returns the leaves of a tree."""
    if isinstance(tree, Leaf):
        yield tree
        return
    for _, child in tree.children:
        if child is not None:
            yield from leaves(child)


def render(tree: Tree, names: Mapping[str, str], spell: Callable[[Any], str]) -> str:
    """Formats a tree as an expression of conditions. Branches with equal texts are joined."""
    if isinstance(tree, Leaf):
        return spell(tree.result)
    texts = [(value, render(child, names, spell)) for value, child in tree.children if child is not None]
    groups: Dict[str, List[Any]] = {}
    for value, text in texts:
        groups.setdefault(text, []).append(value)
    if len(groups) == 1:
        return texts[0][1]
    runs = _runs(texts)
    if runs is not None and len(runs) <= len(groups):
        return _split(runs, lambda left: f"{names[tree.name]} <= {left[-1][1][-1]!r}")
    return _split(list(groups.items()), lambda left: _membership(names[tree.name], [v for _, vs in left for v in vs]))


def _runs(texts: Sequence[Tuple[Any, str]]) -> Optional[List[Tuple[str, List[Any]]]]:
    """Returns ranges of ascending numbers with equal texts, or None if the values are not all numbers."""
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value, _ in texts):
        return None
    runs: List[Tuple[str, List[Any]]] = []
    for value, text in sorted(texts):
        if runs and runs[-1][0] == text:
            runs[-1][1].append(value)
        else:
            runs.append((text, [value]))
    return runs


def _split(groups: List[Tuple[str, List[Any]]], test: Callable[[List[Tuple[str, List[Any]]]], str]) -> str:
    """Halves the groups: the depth of the expression is the logarithm of their number."""
    if len(groups) == 1:
        return groups[0][0]
    middle = len(groups) // 2
    condition = test(groups[:middle])
    yes, no = _split(groups[:middle], test), _split(groups[middle:], test)
    if (yes, no) == ("True", "False"):
        return f"({condition})"
    if no == "False":
        return f"({condition} and {yes})"
    if (yes, no) == ("False", "True"):
        return f"(not {condition})"
    return f"({yes} if {condition} else {no})"


def _membership(name: str, values: Sequence[Any]) -> str:
    from .expressions import literal

    if len(values) == 1:
        return f"{name} == {literal(values[0])}"
    return f"{name} in [{', '.join(map(literal, values))}]"
