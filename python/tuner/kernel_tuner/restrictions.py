"""Restrictions of Kernel Tuner: strings, functions, constraint objects and lists of these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set

from . import expressions
from .tables import Complete, Params


@dataclass
class Restriction:
    """One rule that valid configurations satisfy."""

    #: Returns a true value for valid configurations.
    function: Callable[[Params], Any]
    #: Text of a message.
    text: str
    #: Python expression, where the rule is one.
    source: Optional[str] = None
    #: Parameters that it reads; None: any of them.
    reads: Optional[Set[str]] = None
    #: Evaluated for each combination of values: no expression of the search space means the same.
    tabulated: bool = False

    def holds(self, params: Params) -> bool:
        """Evaluates the rule. A division by zero fails it; another exception is the script's fault."""
        try:
            return bool(self.function(params))
        except ZeroDivisionError:
            return False
        except Exception as error:
            raise ValueError(
                f"the restriction {self.text} raises {type(error).__name__} ({error}) for {params}; correct it, "
                "or let it return False there"
            ) from error


def read(restrictions: Any, tune_params: Mapping[str, Sequence[Any]]) -> List[Restriction]:
    """Reads the `restrictions` argument of `tune_kernel`."""
    if restrictions is None:
        return []
    if isinstance(restrictions, (list, set)) or isinstance(restrictions, tuple) and not _selects(restrictions):
        listed = list(restrictions)
    else:
        listed = [restrictions]
    rules = [_read_one(each, tune_params) for each in listed]
    # Functions last: they are evaluated where the others hold.
    return sorted(rules, key=lambda rule: rule.source is None)


def _read_one(restriction: Any, tune_params: Mapping[str, Sequence[Any]]) -> Restriction:
    names = list(tune_params)
    if isinstance(restriction, Restriction):
        return restriction
    if isinstance(restriction, str):
        return _read_text(restriction, tune_params)
    if isinstance(restriction, tuple) and _selects(restriction):
        rule, selected = restriction[0], list(restriction[1])
        if isinstance(rule, str):
            return _read_text(rule, tune_params)
        return _read_rule(rule, selected, selected=True)
    return _read_rule(restriction, names)


def _selects(restriction: Sequence[Any]) -> bool:
    """Reports whether a tuple is a rule with the names of its parameters, and not several rules."""
    return (
        len(restriction) in (2, 3)
        and isinstance(restriction[1], (list, tuple))
        and all(isinstance(name, str) for name in restriction[1])
    )


def _read_text(text: str, tune_params: Mapping[str, Sequence[Any]]) -> Restriction:
    reads = expressions.words_of(text) & set(tune_params)
    function = expressions.function_of(text)
    if not expressions.reads_number_texts(text, tune_params):
        return Restriction(function, f"`{text}`", text, reads)

    # Older versions of Kernel Tuner put the values into the text, where "40" is a number.
    def holds(params: Params) -> Any:
        try:
            return function(params)
        except TypeError:
            return function({name: expressions.number_of(value) for name, value in params.items()})

    return Restriction(holds, f"`{text}`", reads=reads, tabulated=True)


def _read_rule(rule: Any, names: List[str], selected: bool = False) -> Restriction:
    """Reads a function or constraint object of the parameters `names`, all of them unless `selected`."""
    text = f"`{getattr(rule, '__name__', type(rule).__name__)}`"
    reads = set(names)
    plain = getattr(rule, "_func", None)
    if callable(plain):
        # A function constraint of python-constraint takes the values in order.
        return Restriction(lambda params: plain(*(params[name] for name in names)), text, reads=reads)
    if hasattr(rule, "preProcess"):
        return Restriction(_of_constraint(rule, names), text, reads=reads)
    if not callable(rule):
        raise ValueError(
            f"a restriction of type {type(rule).__name__} is not known; use a string, a function of the "
            "parameters, or a constraint of python-constraint"
        )
    arguments = expressions.required_arguments(rule)
    if not selected and (arguments is None or len(arguments) == 1 and arguments[0] not in (*names, "*", "**")):
        return Restriction(rule, text)
    if arguments is not None and set(arguments) <= {*names, "**"}:
        chosen = names if "**" in arguments else [name for name in arguments if name in names]
        return Restriction(lambda params: rule(**{name: params[name] for name in chosen}), text, reads=set(chosen))
    # By position, in the order of the parameters.
    return Restriction(lambda params: rule(*(params[name] for name in names)), text, reads=reads)


def _of_constraint(rule: Any, names: List[str]) -> Callable[[Params], Any]:
    def holds(params: Params) -> Any:
        assignments = {name: params[name] for name in names}
        domains: Dict[str, List[Any]] = {name: [assignments[name]] for name in names}
        entry = (rule, names)
        left = [entry]
        # Some constraints are this step alone: they remove values, and then themselves.
        rule.preProcess(names, domains, left, {name: [entry] for name in names})
        return all(domains.values()) and (not left or rule(names, domains, assignments))

    return holds


def valid_configurations(
    tune_params: Mapping[str, Sequence[Any]],
    rules: Sequence[Restriction],
    block_size_names: Sequence[str] = (),
    max_threads: int = 1024,
) -> Iterator[Params]:
    """Returns the valid configurations in the order of a complete enumeration: the last parameter
    changes first. A rule is evaluated as soon as the parameters that it reads have values."""
    names = list(tune_params)
    blocks = [name for name in block_size_names if name in tune_params]
    threads = Restriction(
        lambda params: math.prod(int(params[name]) for name in blocks) <= max_threads, "threads", reads=set(blocks)
    )
    due: List[List[Restriction]] = [[] for _ in names] or [[]]
    for rule in [threads, *rules]:
        reads = set(names) if rule.reads is None else rule.reads
        places = [place for place, name in enumerate(names) if name in reads]
        due[max(places, default=0)].append(rule)

    def extend(place: int, chosen: Params) -> Iterator[Params]:
        if place == len(names):
            yield dict(chosen)
            return
        for value in tune_params[names[place]]:
            chosen[names[place]] = value
            if all(rule.holds(chosen) for rule in due[place]):
                yield from extend(place + 1, chosen)
        del chosen[names[place]]

    return extend(0, {})


def count_configurations(
    tune_params: Mapping[str, Sequence[Any]], rules: Sequence[Restriction], block_size_names: Sequence[str]
) -> int:
    """Returns the number of valid configurations."""
    return sum(1 for _ in valid_configurations(tune_params, rules, block_size_names))


def first_configuration(
    tune_params: Mapping[str, Sequence[Any]],
    rules: Sequence[Restriction],
    block_size_names: Sequence[str],
) -> Params:
    """Returns the first valid configuration; raises ValueError if there is none."""
    first = next(valid_configurations(tune_params, rules, block_size_names), None)
    if first is None and next(valid_configurations(tune_params, [], block_size_names), None) is None:
        named = " * ".join(name for name in block_size_names if name in tune_params)
        raise ValueError(f"no configuration has at most 1024 threads in a block ({named}); add smaller values")
    if first is None:
        raise ValueError(
            "no configuration satisfies the restrictions; remove one, or add values to tune_params"
        )
    return first


def completion(
    tune_params: Mapping[str, Sequence[Any]], rules: Sequence[Restriction], block_size_names: Sequence[str]
) -> Complete:
    """Returns a function that finds a valid configuration with given values."""

    def complete(fixed: Params) -> Optional[Params]:
        domains = {name: [fixed[name]] if name in fixed else values for name, values in tune_params.items()}
        return next(valid_configurations(domains, rules, block_size_names), None)

    return complete


def translate(
    rule: Restriction, tune_params: Mapping[str, Sequence[Any]], names: Mapping[str, str], complete: Complete
) -> str:
    """Translates a restriction to the expression of a constraint.

    :param complete: finds a configuration with given values that satisfies the restrictions before it
    """
    if rule.tabulated:
        return expressions.tabulate(rule.holds, tune_params, names, complete)[0]
    try:
        if rule.source is not None:
            return expressions.from_string(rule.source, names)
        # Only functions and lambdas are run with symbols: constraint objects look values up.
        texts = [f"bool({text})" for text in expressions.trace(rule.function, names)[:1]]
        if expressions.agrees(lambda params: bool(rule.function(params)), texts, tune_params, names):
            return texts[0]
    except expressions.Untranslatable:
        pass
    return expressions.tabulate(rule.holds, tune_params, names, complete)[0]
