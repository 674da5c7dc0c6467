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


def test_a_function_of_too_many_combinations_that_cannot_be_translated_says_what_to_do():
    params = {"x": list(range(100)), "y": list(range(100))}
    with pytest.raises(ValueError, match="x, y with 10000 combinations"):
        expressions.translate(lambda p: int(p["x"]) + int(p["y"]), params, {"x": "x", "y": "y"}, "problem_size")


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
    ],
)
def test_a_restriction_has_the_values_of_its_constraint(restriction):
    (rule,) = restrictions.read([restriction], PARAMS)
    text = restrictions.translate(rule, PARAMS, NAMES)
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


def test_a_division_by_zero_fails_a_restriction():
    (rule,) = restrictions.read(["x / flag > 0"], PARAMS)
    assert not rule.holds({"x": 1, "flag": 0})


def test_a_restriction_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="type int is not known"):
        restrictions.read([3], PARAMS)
