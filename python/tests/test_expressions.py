"""Translation of functions and strings to expressions, compared with Python's own evaluation."""

import itertools
import math

import pytest

from tuner.kernel_tuner import expressions, restrictions

PARAMS = {"x": [1, 2, 3, 8, 64], "y": [1, 4, 6], "flag": [0, 1], "mode": ["row", "col"]}
NAMES = {name: name for name in PARAMS}


def value_of(text, params):
    """Evaluates an expression of a search space; what differs from Python's is not used in these tests."""
    functions = {"ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt, "log2": math.log2, "abs": abs}
    return eval(text, functions, dict(params))


def compare(source, params=PARAMS):
    texts = expressions.translate(source, params, NAMES, "the function")
    function = expressions.function_of(source)
    for values in itertools.product(*params.values()):
        config = dict(zip(params, values))
        expected = function(dict(config))
        expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        assert [value_of(text, config) for text in texts] == expected, (texts, config)
    return texts


@pytest.mark.parametrize(
    "source",
    [
        lambda p: p["x"] * p["y"] + 1,
        lambda p: (p["x"] // 2, 2 ** p["flag"], 5),
        lambda p: p["x"] if p["y"] > 2 and p["x"] != 8 else -p["y"],
        lambda p: p["x"] * 3 if p["mode"] == "row" else p["y"],
        lambda p: int(p["x"] / p["y"]),
        lambda p: math.ceil(p["x"] / p["y"]),
        lambda p: min(p["x"], p["y"]),
        lambda p: max(p["x"], p["y"], 3),
        lambda p: sum(p["y"] for _ in range(3)),
        lambda p: [4, 5][p["flag"]],
        lambda p: p.get("x", 2) + 1,
        lambda p: 7,
        "x * y // 2",
        "math.ceil(x / y)",
        "x in (1, 2, 8) or y == 4",
        "max(x, y) - (1 if flag else 0)",
        "np.prod([x, y])",
        "{1: 10, 4: 20, 6: 30}[y]",
        "len([v for v in (1, 2) if v < x])",
    ],
)
def test_a_function_or_string_has_the_values_of_its_expression(source):
    compare(source)


def test_branches_become_conditions_and_not_a_table():
    (text,) = compare(lambda p: p["x"] if p["flag"] else p["y"])
    assert text.count(" if ") == 1


def swallow(p):
    try:
        return 1 if math.log2(p["x"]) > 1 else 0
    except Exception:
        return 7


@pytest.mark.parametrize(
    "source",
    [
        lambda p: str(p["x"]) + "a",
        lambda p: f"({p['x']})",
        lambda p: "%d %s" % (p["x"], p["mode"]),
        lambda p: "{x}{mode}".format(**p),
        lambda p: 1 if isinstance(p["mode"], str) and isinstance(p["x"], int) else 2,
        lambda p: 1 if type(p["x"]) is int else 2,
        lambda p: 1 if p["mode"] is PARAMS["mode"][0] else 2,
        lambda p: {"row": 1, "col": 2}.get(p["mode"], 3),
        lambda p: len(repr(p)),
        lambda p: sum(int(v) for v in p.values() if not isinstance(v, str)),
        lambda p: max(len(str(v)) for _, v in p.items()),
        lambda p: int(p["x"]) if p["y"] == 4 else 0,
        lambda p: (lambda x, **others: int(x) + others["y"])(**p),
        lambda p: int(dict(p)["x"]) + int({**p}["y"]) + int(p.copy()["flag"]),
        lambda p: round(p["x"] / 3),
        swallow,
    ],
)
def test_a_function_of_what_symbols_cannot_record_is_evaluated(source):
    compare(source)


def test_a_function_reads_other_parameters_by_the_values_of_some():
    (text,) = compare(lambda p: int(p["x"]) if p["y"] == 4 else (len(p["mode"]) if p["flag"] else 0))
    assert "flag" in text and "mode" not in text


def test_a_function_of_many_combinations_is_evaluated_over_the_space():
    params = {name: list(range(1, 9)) for name in "abcde"}
    names = {name: name for name in params}
    (text,) = expressions.translate(lambda p: int(p["a"] * p["b"] / p["b"] * p["c"] / p["c"]), params, names, "size")
    assert "b" not in text and "c" not in text, "they do not matter"
    (rule,) = restrictions.read(lambda p: math.log2(p["a"]) <= sum(p.values()) % 5, params)
    text = restrictions.translate(rule, params, names, restrictions.completion(params, [], ()))
    code = compile(text, "", "eval")
    depth = longest = 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        longest = max(longest, depth)
    assert longest < 50, "the program nests 100 expressions at most"
    for values in itertools.product(*params.values()):
        config = dict(zip(params, values))
        assert bool(eval(code, {}, config)) == rule.holds(config)


def test_a_function_is_evaluated_for_valid_configurations_alone():
    params = {"x": [1, 2, 3], "y": [0, 1]}
    rules = restrictions.read([lambda p: int(6 / p["y"]) > p["x"], "y > 0"], params)
    assert [rule.source for rule in rules] == ["y > 0", None]
    complete = restrictions.completion(params, rules, ())
    (text,) = expressions.translate(lambda p: int(p["x"] / p["y"]), params, {"x": "x", "y": "y"}, "size", complete)
    assert [value_of(text, {"x": x, "y": 1}) for x in (1, 2, 3)] == [1, 2, 3]


def test_results_of_different_lengths_are_padded():
    texts = expressions.translate(lambda p: (4, 2)[: p["flag"] + 1], PARAMS, NAMES, "problem_size", pad="1")
    assert [value_of(text, {"flag": 0}) for text in texts] == [4, 1]
    assert [value_of(text, {"flag": 1}) for text in texts] == [4, 2]


@pytest.mark.parametrize("source", ["nope * 2", lambda p: p["nope"], lambda p: int(1 / (p["x"] - p["x"]))])
def test_a_string_or_function_that_raises_is_named(source):
    with pytest.raises(ValueError, match="problem_size raises (NameError|KeyError|ZeroDivisionError).*'x': 1.*correct it"):
        expressions.translate(source, PARAMS, NAMES, "problem_size")


def test_a_string_that_is_not_python_is_named():
    with pytest.raises(ValueError, match="`x >` is not a Python expression.*correct it"):
        restrictions.read(["x >"], PARAMS)


def test_the_place_of_a_value_is_its_number():
    for values in ([5], [2, 4, 6], [1, 2, 4, 8], ["a", "b"], [True, False], [0.5, 0.25]):
        text = expressions.position("p", values)
        assert [value_of(text, {"p": value}) for value in values] == list(range(len(values)))


@pytest.mark.parametrize(
    "restriction",
    [
        "x * y <= 32 and flag == 0",
        lambda p: p["x"] * p["y"] <= 32,
        lambda p: p["x"] >= 2 and (p["flag"] == 1 or p["mode"] == "row"),
        lambda x, y, flag, mode: x > y or not flag,
        (lambda x, y: x % y == 0, ["x", "y"]),
        lambda p: p["x"] in (1, 8),
        lambda p: "r" in p["mode"],
        lambda p: str(p["x"]) in ("1", "2"),
        lambda p: math.log2(p["x"]) <= 1 if p["flag"] else True,
        lambda first, second, third, fourth: first > second or not third,
        lambda x, y=4, **others: x > y,
        lambda **p: p["x"] > p["y"],
        lambda p, bound=3: p["x"] > bound,
        (lambda v: v > 3, ["x"]),
        (lambda one, two: one > two, ["y", "x"]),
        ("x > y", ["x", "y"]),
    ],
)
def test_a_restriction_has_the_values_of_its_constraint(restriction):
    (rule,) = restrictions.read([restriction], PARAMS)
    text = restrictions.translate(rule, PARAMS, NAMES, restrictions.completion(PARAMS, [], ()))
    for values in itertools.product(*PARAMS.values()):
        config = dict(zip(PARAMS, values))
        assert bool(value_of(text, config)) == rule.holds(dict(config)), (text, config)


def test_a_constraint_object_is_a_restriction():
    constraint = pytest.importorskip("constraint")
    rules = restrictions.read(
        [constraint.MaxProdConstraint(32), (constraint.AllDifferentConstraint(), ["x", "y"])], {"x": [1, 8], "y": [1, 8]}
    )
    valid = list(restrictions.valid_configurations({"x": [1, 8], "y": [1, 8]}, rules))
    assert valid == [{"x": 1, "y": 8}, {"x": 8, "y": 1}]


def test_a_restriction_that_raises_is_named_with_its_configuration():
    (rule,) = restrictions.read([lambda p: p["z"] > 1], PARAMS)
    with pytest.raises(ValueError, match="KeyError.*z.*correct it"):
        rule.holds({"x": 1})


def test_a_restriction_counts_with_numbers_that_are_texts():
    params = {"x": [8, 64], "most": ["40"]}
    (rule,) = restrictions.read(["x * 2 <= most"], params)
    assert [rule.holds({"x": x, "most": "40"}) for x in (8, 64)] == [True, False]
    complete = restrictions.completion(params, [], ())
    text = restrictions.translate(rule, params, {"x": "x", "most": "most"}, complete)
    assert "40" not in text, f"{text} compares a text with a number"
    (unlike,) = restrictions.read(["most != 'float'"], params)
    assert unlike.holds({"x": 8, "most": "40"})


def test_a_division_by_zero_fails_a_restriction():
    (rule,) = restrictions.read(["x / flag > 0"], PARAMS)
    assert not rule.holds({"x": 1, "flag": 0})


def test_a_restriction_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="type int is not known"):
        restrictions.read([3], PARAMS)


@pytest.mark.parametrize(
    "make",
    [
        lambda c: c.InSetConstraint([1, 2, 4]), lambda c: c.NotInSetConstraint({8}), lambda c: c.SomeInSetConstraint([1], 1),
        lambda c: c.SomeNotInSetConstraint([1], 1), lambda c: c.AllDifferentConstraint(), lambda c: c.AllEqualConstraint(),
        lambda c: c.MaxSumConstraint(6), lambda c: c.MinSumConstraint(6), lambda c: c.ExactSumConstraint(6),
        lambda c: c.MaxProdConstraint(8), lambda c: c.MinProdConstraint(8), lambda c: c.FunctionConstraint(lambda x, y: x < y),
    ],
)  # fmt: skip
def test_each_kind_of_constraint_object_has_its_solutions(make):
    constraint = pytest.importorskip("constraint")
    params = {"x": [1, 2, 8], "y": [1, 4, 8]}
    problem = constraint.Problem()
    for name, values in params.items():
        problem.addVariable(name, list(values))
    problem.addConstraint(make(constraint), list(params))
    expected = sorted((found["x"], found["y"]) for found in problem.getSolutions())
    rules = restrictions.read([make(constraint)], params)
    assert sorted(tuple(found.values()) for found in restrictions.valid_configurations(params, rules)) == expected
    rules = restrictions.read([(make(constraint), ["x", "y"])], params)
    assert sorted(tuple(found.values()) for found in restrictions.valid_configurations(params, rules)) == expected
