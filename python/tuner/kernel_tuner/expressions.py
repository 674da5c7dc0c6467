"""Translation of Python functions and strings of parameters to expressions of a search space.

A function is run with symbols in place of the parameters. Where it branches, it is run once for each
path, and the paths become `A if CONDITION else B`. What cannot be run this way (a conversion to a
whole number, a call into NumPy) is evaluated for every combination of the parameters it reads.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Set, Union

Params = Dict[str, Any]

import numpy

_PATHS_MAX = 64
_TABLE_MAX = 4096
_FUNCTIONS = {
    "abs", "bool", "ceil", "float", "floor", "int", "len", "log2", "max", "min", "pow", "round", "sqrt",
}  # fmt: skip
_WORDS = re.compile("([a-zA-Z0-9_]+)")


class Untranslatable(Exception):
    """The function or string has no form as an expression."""


def replace_params(text: str, params: Mapping[str, Any]) -> str:
    """Replaces each word that is a parameter's name by its value."""
    return "".join(str(params[word]) if word in params else word for word in _WORDS.split(text))


def literal(value: Any) -> str:
    """Formats a value as an expression."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            raise Untranslatable(f"{value} is not a finite number")
        return repr(value)
    if isinstance(value, str):
        # Expressions have no escapes.
        if "'" in value and '"' in value or "\\" in value or "\n" in value:
            raise Untranslatable(f"the text {value!r} has no spelling in an expression")
        return f'"{value}"' if "'" in value else f"'{value}'"
    raise Untranslatable(f"{value!r} is neither a number nor a text")


class Symbol:
    """A value that is not known yet: operations build the text of an expression."""

    def __init__(self, text: str, tracer: "_Tracer") -> None:
        self.text = text
        self._tracer = tracer

    def _operate(self, operator: str, other: Any, swapped: bool = False) -> "Symbol":
        left, right = self.text, self._tracer.text_of(other)
        if swapped:
            left, right = right, left
        return Symbol(f"({left} {operator} {right})", self._tracer)

    def __bool__(self) -> bool:
        return self._tracer.decide(self.text)

    def __refuse(self, *_: Any) -> Any:
        raise Untranslatable("a value of a parameter is converted")

    __int__ = __float__ = __index__ = __hash__ = __iter__ = __len__ = __contains__ = __refuse

    def __neg__(self) -> "Symbol":
        return Symbol(f"(-{self.text})", self._tracer)

    def __pos__(self) -> "Symbol":
        return self

    def __abs__(self) -> "Symbol":
        return Symbol(f"abs({self.text})", self._tracer)

    def __ceil__(self) -> "Symbol":
        return Symbol(f"ceil({self.text})", self._tracer)

    def __floor__(self) -> "Symbol":
        return Symbol(f"floor({self.text})", self._tracer)

    def __trunc__(self) -> "Symbol":
        return Symbol(f"int({self.text})", self._tracer)


def _add_operators() -> None:
    operators = {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
        "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    }  # fmt: skip
    for name, operator in operators.items():
        def forward(self: Symbol, other: Any, operator: str = operator) -> Symbol:
            return self._operate(operator, other)

        def backward(self: Symbol, other: Any, operator: str = operator) -> Symbol:
            return self._operate(operator, other, swapped=True)

        setattr(Symbol, f"__{name}__", forward)
        setattr(Symbol, f"__r{name}__", backward)
    for name, operator in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
        def compare(self: Symbol, other: Any, operator: str = operator) -> Symbol:
            return self._operate(operator, other)

        setattr(Symbol, f"__{name}__", compare)


_add_operators()


class _Tracer:
    """Runs a function along one path of its branches; the other sides are the paths to run next."""

    def __init__(self, path: Sequence[bool]) -> None:
        self._path = list(path)
        self.conditions: List[str] = []
        self.taken: List[bool] = []

    def text_of(self, value: Any) -> str:
        return value.text if isinstance(value, Symbol) else literal(value)

    def decide(self, condition: str) -> bool:
        # The same question again: the path has its answer.
        if condition in self.conditions:
            return self.taken[self.conditions.index(condition)]
        at = len(self.taken)
        answer = self._path[at] if at < len(self._path) else True
        self.conditions.append(condition)
        self.taken.append(answer)
        if len(self.taken) > _PATHS_MAX:
            raise Untranslatable("the function has too many branches")
        return answer


def trace(call: Callable[[Dict[str, Symbol]], Any], names: Mapping[str, str]) -> List[str]:
    """Runs `call` with symbols and returns the expressions of its results.

    `names` maps each parameter to its name in the search space. A tuple or list as the result gives
    one expression for each element.
    """
    budget = [_PATHS_MAX]

    def explore(path: List[bool]) -> List[str]:
        budget[0] -= 1
        if budget[0] < 0:
            raise Untranslatable("the function has too many paths")
        tracer = _Tracer(path)
        symbols = {name: Symbol(text, tracer) for name, text in names.items()}
        try:
            result = call(symbols)
        except Untranslatable:
            raise
        except Exception as error:
            raise Untranslatable(f"{type(error).__name__}: {error}") from error
        listed = list(result) if isinstance(result, (tuple, list)) else [result]
        texts = [tracer.text_of(value) for value in listed]
        # From the last branch up: the other side of each has not been run.
        for at in range(len(tracer.taken) - 1, len(path) - 1, -1):
            other = explore(tracer.taken[:at] + [False])
            if len(other) != len(texts):
                raise Untranslatable("the function returns results of different lengths")
            condition = tracer.conditions[at]
            texts = [
                yes if yes == no else f"({yes} if {condition} else {no})"
                for yes, no in zip(texts, other)
            ]
        return texts

    return explore([])


class _Reader(Dict[str, Any]):
    """Parameters that record which of them are read."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        self.read: Set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


def parameters_read(call: Callable[[Params], Any], tune_params: Mapping[str, Sequence[Any]]) -> List[str]:
    """Returns the parameters that a function reads, or all where that cannot be seen."""
    first = _Reader({name: values[0] for name, values in tune_params.items()})
    last = _Reader({name: values[-1] for name, values in tune_params.items()})
    for params in (first, last):
        try:
            call(params)
        except Exception:
            return list(tune_params)
    read = first.read | last.read
    return [name for name in tune_params if name in read] or list(tune_params)


def tabulate(
    call: Callable[[Params], Any],
    tune_params: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    what: str,
) -> List[str]:
    """Evaluates a function for all combinations of the parameters that it reads, and returns the
    expressions of its results as nested conditions."""
    read = parameters_read(call, tune_params)
    count = math.prod(len(tune_params[name]) for name in read)
    if count > _TABLE_MAX:
        raise ValueError(
            f"{what} cannot be translated, and it depends on {', '.join(read)} with {count} combinations, "
            f"more than {_TABLE_MAX}; write it with + - * / // % and comparisons, as a string or a lambda"
        )
    rest = {name: values[0] for name, values in tune_params.items()}

    def rows(chosen: Params, left: List[str]) -> List[str]:
        if not left:
            result = call(dict(rest, **chosen))
            listed = list(result) if isinstance(result, (tuple, list)) else [result]
            return [literal(value) for value in listed]
        name, *others = left
        branches = [(value, rows({**chosen, name: value}, others)) for value in tune_params[name]]
        texts = list(branches[-1][1])
        for value, each in reversed(branches[:-1]):
            test = f"{names[name]} == {literal(value)}"
            texts = [a if a == b else f"({a} if {test} else {b})" for a, b in zip(each, texts)]
        return texts

    return rows({}, read)


def position(name: str, values: Sequence[Any]) -> str:
    """Returns the expression of a value's place in the list of a parameter's values."""
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if len(values) == 1:
        return "0"
    if whole:
        step = values[1] - values[0]
        if step > 0 and all(value == values[0] + at * step for at, value in enumerate(values)):
            return f"(({name} - {values[0]}) // {step})"
    text = str(len(values) - 1)
    for at in range(len(values) - 2, -1, -1):
        text = f"({at} if {name} == {literal(values[at])} else {text})"
    return text


class _Rename(ast.NodeTransformer):
    """Checks that a Python expression is one of a search space, and renames its parameters."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._names:
            raise Untranslatable(f"`{node.id}` is not a parameter")
        return ast.Name(self._names[node.id])

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return ast.List([self.visit(each) for each in node.elts], ast.Load())

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, (bool, int, float, str)):
            raise Untranslatable(f"{node.value!r} is not a value of an expression")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else None
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            name = function.attr if function.value.id == "math" else None
        if name not in _FUNCTIONS or node.keywords:
            raise Untranslatable(f"`{ast.unparse(function)}` is not a function of a search space")
        arguments = [self.visit(each) for each in node.args]
        return ast.Call(ast.Name(name), arguments, [])

    def generic_visit(self, node: ast.AST) -> ast.AST:
        allowed = (
            ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.List,
            ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
        )  # fmt: skip
        if not isinstance(node, allowed) or isinstance(node, (ast.Is, ast.IsNot, ast.MatMult)):
            raise Untranslatable(f"`{type(node).__name__}` is not part of an expression")
        return super().generic_visit(node)


def from_string(text: str, names: Mapping[str, str]) -> str:
    """Translates a Python expression; raises :class:`Untranslatable`, or ValueError if it is not Python."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"`{text}` is not a Python expression: {error}") from error
    return ast.unparse(_Rename(names).visit(tree))


def evaluate(text: str, params: Mapping[str, Any]) -> Any:
    """Evaluates a Python expression of parameters, as Kernel Tuner does: the text is the script's own."""
    return _evaluate(compile(text.strip(), "<expression>", "eval"), params)


def _evaluate(code: Any, params: Mapping[str, Any]) -> Any:
    # As globals: comprehensions do not see locals.
    return eval(code, {"np": numpy, "numpy": numpy, "math": math, **params})


def function_of(source: Union[str, Callable[..., Any]]) -> Callable[[Params], Any]:
    """Returns the function of the parameters that a string or a callable stands for."""
    if not isinstance(source, str):
        return source
    words = words_of(source)
    code = compile(source.strip(), "<expression>", "eval")
    return lambda params: _evaluate(code, {word: params[word] for word in words if word in params})


def words_of(text: str) -> Set[str]:
    """Returns the words of a text, the parameters among them."""
    return set(_WORDS.split(text))


def translate(
    source: Union[str, Callable[..., Any]],
    tune_params: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    what: str,
) -> List[str]:
    """Translates a string or a function of the parameters to expressions."""
    try:
        if isinstance(source, str):
            return [from_string(source, names)]
        return trace(source, names)
    except Untranslatable:
        return tabulate(function_of(source), tune_params, names, what)


def configurations(tune_params: Mapping[str, Sequence[Any]]) -> Iterable[Params]:
    """Returns all combinations, the last parameter first."""
    for values in itertools.product(*tune_params.values()):
        yield dict(zip(tune_params, values))


def takes_params_dict(function: Callable[..., Any], names: Sequence[str]) -> bool:
    """Reports whether a restriction takes one dict of parameters, and not each by its name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    named = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    return len(named) == 1 and named[0].kind is not named[0].VAR_POSITIONAL and named[0].name not in names
