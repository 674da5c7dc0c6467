"""Translation of Python functions and strings of parameters to expressions of a search space.

A function is run with symbols in place of the parameters. Where it branches, it is run once for each
path, and the paths become `A if CONDITION else B`. What cannot be run this way (a conversion to a
whole number or a text, a call into NumPy) is evaluated over the space; see `tables`.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import random
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Union

import numpy

from . import tables
from .tables import Complete, Params

_PATHS_MAX = 64
# Configurations for which the expression of a function is compared with the function itself.
_COMPARED_MAX = 256
_COMPARED_SEED = 1
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

    def _refuse(self, *_: Any) -> Any:
        self._tracer.refused = True
        raise Untranslatable("a value of a parameter is converted")

    __int__ = __float__ = __complex__ = __index__ = __hash__ = __iter__ = __len__ = __contains__ = __getitem__ = _refuse
    # `isinstance` asks for the class where the type is another one.
    __class__ = property(_refuse)
    __str__ = __repr__ = __format__ = __bytes__ = __round__ = __divmod__ = __rdivmod__ = __reduce_ex__ = _refuse

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
        #: A symbol was used in a way that cannot be recorded; the function may have caught the exception.
        self.refused = False

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
        if tracer.refused:
            raise Untranslatable("a value of a parameter is converted")
        texts = [tracer.text_of(value) for value in listed(result)]
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


def listed(result: Any) -> List[Any]:
    """Returns the elements of a result, or the result as the only one."""
    # A symbol first: it answers no `isinstance`.
    if type(result) is Symbol or not isinstance(result, (tuple, list, numpy.ndarray)):
        return [result]
    return list(result)


def tabulate(
    call: Callable[[Params], Any],
    tune_params: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    complete: Complete,
    pad: Optional[str] = None,
) -> List[str]:
    """Evaluates a function over the space and returns the expressions of its results as conditions.

    :param pad: expression of the elements that shorter results lack
    """
    tree = tables.grow(call, tune_params, complete)
    for leaf in tables.leaves(tree):
        leaf.result = [literal(value) for value in listed(leaf.result)]
    lengths = {len(leaf.result) for leaf in tables.leaves(tree)}
    if len(lengths) > 1 and pad is None:
        raise ValueError(f"results have {min(lengths)} to {max(lengths)} elements; return as many each time")

    def spell(at: int) -> Callable[[Any], str]:
        return lambda texts: str(texts[at]) if at < len(texts) else str(pad)

    return [tables.render(tree, names, spell(at)) for at in range(max(lengths))]


def agrees(
    call: Callable[[Params], Any],
    texts: Sequence[str],
    tune_params: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
) -> bool:
    """Compares the expressions of a function with its results, for configurations at random. A function may
    ask for a value's type or identity, which a symbol cannot refuse."""
    functions = {"ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt, "log2": math.log2}
    codes = [compile(text, "<expression>", "eval") for text in texts]
    for params in _sample(tune_params):
        values = {names[name]: value for name, value in params.items()}
        try:
            expected = listed(call(dict(params)))
        except Exception:
            # Not a valid configuration, or the evaluation of a valid one reports it.
            continue
        try:
            found = [eval(code, dict(functions), values) for code in codes]
        except Exception:
            return False
        if len(found) != len(expected) or any(bool(a != b) for a, b in zip(found, expected)):
            return False
    return True


def _sample(tune_params: Mapping[str, Sequence[Any]]) -> List[Params]:
    if math.prod(len(values) for values in tune_params.values()) <= _COMPARED_MAX:
        return [dict(zip(tune_params, values)) for values in itertools.product(*tune_params.values())]
    generator = random.Random(_COMPARED_SEED)
    return [{name: generator.choice(values) for name, values in tune_params.items()} for _ in range(_COMPARED_MAX)]


def position(name: str, values: Sequence[Any]) -> str:
    """Returns the expression of a value's place in the list of a parameter's values."""
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if len(values) == 1:
        return "0"
    if whole:
        step = values[1] - values[0]
        if step > 0 and all(value == values[0] + at * step for at, value in enumerate(values)):
            return f"(({name} - {values[0]}) // {step})"
    places = tables.Branch(name, [(value, tables.Leaf(at)) for at, value in enumerate(values)])
    return tables.render(places, {name: name}, str)


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
    """Evaluates a Python expression of parameters, as Kernel Tuner does: the text is the script's own. Kernel
    Tuner puts the values into the text, where "40" is a number."""
    return _evaluate(_compiled(text), {name: number_of(value) for name, value in params.items()})


def with_numbers(size: Callable[[Params], Any]) -> Callable[[Params], Any]:
    """Returns the function of a problem size with the values of texts that it returns."""

    def sizes(params: Params) -> Any:
        # A symbol answers no `isinstance`.
        return [evaluate(each, params) if type(each) is str else each for each in listed(size(params))]

    return sizes


def number_of(value: Any) -> Any:
    """Returns the number that a text spells, and any other value as it is."""
    # A symbol answers no `isinstance`.
    if type(value) is not str:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def reads_number_texts(text: str, tune_params: Mapping[str, Sequence[Any]]) -> bool:
    """Reports whether an expression reads a parameter with a value that is the text of a number."""
    read = words_of(text) & set(tune_params)
    return any(number_of(value) is not value for name in read for value in tune_params[name])


def _evaluate(code: Any, params: Mapping[str, Any]) -> Any:
    # As globals: comprehensions do not see locals.
    return eval(code, {"np": numpy, "numpy": numpy, "math": math, "ceil": math.ceil, "floor": math.floor, **params})


def function_of(source: Union[str, Callable[..., Any]]) -> Callable[[Params], Any]:
    """Returns the function of the parameters that a string or a callable stands for; raises ValueError if
    a string is not Python."""
    if not isinstance(source, str):
        return source
    words = words_of(source)
    code = _compiled(source)
    return lambda params: _evaluate(code, {word: params[word] for word in words if word in params})


def _compiled(text: str) -> Any:
    try:
        return compile(text.strip(), "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"`{text}` is not a Python expression: {error}; correct it") from error


def words_of(text: str) -> Set[str]:
    """Returns the words of a text, the parameters among them."""
    return set(_WORDS.split(text))


def translate(
    source: Union[str, Callable[..., Any]],
    tune_params: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    what: str,
    complete: Optional[Complete] = None,
    pad: Optional[str] = None,
) -> List[str]:
    """Translates a string or a function of the parameters to expressions.

    :param complete: returns a valid configuration with given values; without it all are valid
    :param pad: expression of the elements that shorter results lack
    """
    function = named(function_of(source), what)
    try:
        if isinstance(source, str):
            if not reads_number_texts(source, tune_params):
                return [from_string(source, names)]
            plain, words = function_of(source), words_of(source) & set(tune_params)
            function = named(lambda params: plain({name: number_of(params[name]) for name in words}), what)
        else:
            texts = trace(source, names)
            if agrees(source, texts, tune_params, names):
                return texts
    except Untranslatable:
        pass
    first = {name: values[0] for name, values in tune_params.items()}
    try:
        return tabulate(function, tune_params, names, complete or (lambda fixed: {**first, **fixed}), pad)
    except Untranslatable as error:
        raise ValueError(f"{what} cannot be used: {error}; correct it") from error


def named(call: Callable[[Params], Any], what: str) -> Callable[[Params], Any]:
    """Returns a function whose exceptions say what it is, and for which configuration."""

    def named_call(params: Params) -> Any:
        try:
            return call(params)
        except Exception as error:
            shown = {**params}
            raise ValueError(f"{what} raises {type(error).__name__} ({error}) for {shown}; correct it") from error

    return named_call


def required_arguments(function: Callable[..., Any]) -> Optional[List[str]]:
    """Returns the names of a function's arguments without a default, `*` and `**` for any number of them;
    None if unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    marks: Dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    required = [marks.get(each.kind, each.name) for each in parameters if each.default is each.empty]
    # A function of a dict may take further ones by name.
    return [name for name in required if name != "**"] if len(required) > 1 else required
