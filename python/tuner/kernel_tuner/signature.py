"""Parameters of a kernel function, read from its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

#: Comments of C.
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WRITE = r"=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--"
# What follows an element that is written, or may be: a second subscript is not followed.
_ASSIGNMENT = re.compile(rf"{_WRITE}|->|\[")
# Functions that read through a pointer.
_LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv")
# Keywords, types and functions of the language and of CUDA that take elements by value.
_MATHEMATICS = (
    "abs|acosh?|asinh?|atan[2h]?|cbrt|ceil|copysign|cosh?|cospi|erfc?|exp(?:2|10|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|"
    "hypot|ilogb|is(?:nan|inf|finite)|ldexp|lgamma|l?l?rint|l?l?round|log(?:2|10|1p)?|max|min|norm|nearbyint|pow|rsqrt|"
    "signbit|sinh?|sinpi|sqrt|tanh?|tgamma|trunc"
)
_BY_VALUE = re.compile(
    rf"(?:{_MATHEMATICS})f?|if|while|for|switch|return|sizeof|decltype|alignof|(?:static|reinterpret|const)_cast|printf|"
    r"(?:static_)?assert|bool|signed|unsigned|size_t|u?int\d*_t|half2?|u?(?:char|short|int|long|longlong)[1-4]?|"
    r"(?:float|double)[1-4]?|make_\w+|as_\w+|atomic[A-Z]\w*|__\w+"
)
#: A name of C.
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel function."""

    #: Name in the source; None if it has none.
    name: Optional[str]
    #: Text of the declaration.
    text: str
    #: It is a pointer.
    pointer: bool
    #: It points to constant data.
    constant: bool
    #: The kernel may write through it.
    written: bool
    #: Each use of it but its declaration stores to an element.
    overwritten: bool = False


def base_name(kernel_name: str) -> str:
    """Returns the function's name without namespaces and template arguments."""
    return kernel_name.split("<", 1)[0].strip().rsplit("::", 1)[-1]


def parameters_of(source: str, kernel_name: str, conditional: Optional[bool] = None) -> List[Parameter]:
    """Returns the parameters of a kernel; raises ValueError if the source does not define it.

    :param conditional: takes or omits the parameters under conditions; None leaves their directives in the texts
    """
    text = COMMENT.sub(" ", source)
    base = base_name(kernel_name)
    # An explicit instantiation has types in place of the template's.
    places = [at.end() for at in re.finditer(r"(\btemplate\s+)?__global__", text) if at[1] is None]
    lists = [found for found in (_parameter_list(text, place, base) for place in places) if found is not None]
    # A macro may stand for `__global__ void`.
    lists = lists or _lists_of_definitions(text, base)
    if not lists:
        raise ValueError(_not_found(text, kernel_name))
    # A definition follows its declarations.
    inside = _expanded(lists[-1], text)
    if conditional is False:
        inside = re.sub(r"(?ms)^[ \t]*#[ \t]*if.*?^[ \t]*#[ \t]*endif\b", "", inside)
    if conditional is not None:
        inside = re.sub(r"(?m)^[ \t]*#[^\n]*", "", inside)
    return [_parameter(each, text) for each in split_top(inside) if each.strip() not in ("", "void")]


def may_be_elsewhere(source: str, kernel_name: str) -> bool:
    """Reports whether a kernel that is not found may come from an included file or from macros."""
    text = COMMENT.sub(" ", source)
    included = re.search(r'(?m)^[ \t]*#[ \t]*include[ \t]*"', text) is not None
    return included or "##" in text or re.search(rf"\b{re.escape(base_name(kernel_name))}\b", text) is not None


def may_point_to_tunable_type(parameter: Parameter, source: str, kernel_name: str, tunable: Iterable[str]) -> bool:
    """Reports whether a tunable name may choose the type that a pointer points to: by itself, by macros and aliases of
    types, or as an argument of the kernel's template. More pointers than necessary count: they take any array."""
    text = COMMENT.sub(" ", source)
    names = set(tunable)
    templates = set(IDENTIFIER.findall(" ".join(re.findall(r"template\s*<([^{};()]*)>", text))))
    if names & set(IDENTIFIER.findall(kernel_name.partition("<")[2])):
        names |= templates
    defined = re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S.*)$", text.replace("\\\n", " "))
    aliases = [(name, body) for body, name in re.findall(r"\btypedef\s+([^;{}]+?)(\w+)\s*;", text)]
    aliases += re.findall(r"\busing\s+(\w+)\s*=([^;]+);", text)
    known = [name for name, _ in defined + aliases]
    # One that is defined several times depends on conditions.
    names |= {name for name in known if known.count(name) > 1}
    for _ in known:
        more = {name for name, body in defined + aliases if names & set(IDENTIFIER.findall(body))}
        if more <= names:
            break
        names |= more
    type_words = IDENTIFIER.findall(parameter.text)[: -1 if parameter.name else None]
    return not names.isdisjoint(type_words)


def is_pointer_alias(parameter: Parameter, source: str) -> bool:
    """Reports whether the source has another name for a pointer in a parameter's type: `typedef T *name;`."""
    text = COMMENT.sub(" ", source)
    names = "|".join(map(re.escape, IDENTIFIER.findall(parameter.text)))
    return re.search(rf"\btypedef\b[^;{{}}]*\*\s*(?:{names})\s*;|\busing\s+(?:{names})\s*=[^;]*\*", text) is not None


def _macros(text: str) -> Dict[str, str]:
    """Returns the bodies of the macros without arguments."""
    return dict(re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S.*)$", text.replace("\\\n", " ")))


def _function_macros(text: str, name: str) -> List[Tuple[str, str]]:
    """Returns the arguments and the body of each definition of a macro with arguments."""
    return re.findall(rf"(?m)^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\(([^)]*)\)(.*)$", text.replace("\\\n", " "))


def _lists_of_definitions(text: str, base: str) -> List[str]:
    """Returns the parameter lists of the function `base` after macros that stand for `__global__`."""
    names = [name for name, body in _macros(text).items() if "__global__" in body]
    places = [at.end() for name in names for at in re.finditer(rf"\b{re.escape(name)}\b", text)]
    lists = [_parameter_list(text, at, base) for at in places]
    return [inside for inside in lists if inside is not None]


def _expanded(inside: str, text: str) -> str:
    """Replaces macros in a parameter list by their bodies."""
    # Only what holds whole parameters: names of types stay as they are.
    whole = {name: body for name, body in _macros(text).items() if "," in body or len(body.split()) > 1 and "*" in body}
    return IDENTIFIER.sub(lambda word: whole.get(word[0], word[0]), inside)


def _not_found(text: str, kernel_name: str) -> str:
    names = re.findall(r"__global__[^;{(]*?(?:__launch_bounds__\s*\([^)]*\))?[^;{(]*?(\w+)\s*\(", text)
    known = f"it defines {', '.join(dict.fromkeys(names))}" if names else "it defines no `__global__` function"
    return f"the kernel `{kernel_name}` is not in the source: {known}; correct kernel_name"


def _parameter_list(text: str, at: int, base: str) -> Optional[str]:
    """Returns the text between the parentheses of the function `base` whose declaration begins at `at`."""
    end = re.search("[;{]", text[at:])
    head = text[at : at + end.start()] if end else text[at:]
    found = re.search(rf"\b{re.escape(base)}\s*\(", head)
    if found is None:
        return None
    return closed_list(text, at + found.end() - 1)


def closed_list(text: str, opening: int) -> Optional[str]:
    """Returns the text between a parenthesis and the one that closes it."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[opening + 1 : place]
    return None


def split_top(text: str) -> List[str]:
    """Returns the parts of a text between the commas that no bracket encloses."""
    parts, depth, angle = [""], 0, 0
    for letter in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        # In parentheses they compare.
        angle += {"<": 1, ">": -1}.get(letter, 0) if depth == 0 else 0
        if letter == "," and depth == angle == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str, source: str) -> Parameter:
    declaration = " ".join(text.split("=")[0].split())
    pointer = "*" in declaration or "[" in declaration
    constant = re.search(r"\bconst\b", declaration.split("*")[0]) is not None
    words: Sequence[str] = IDENTIFIER.findall(declaration.split("[")[0])
    name = words[-1] if len(words) > 1 else None
    written = pointer and not constant and (name is None or _is_written(name, source))
    overwritten = written and name is not None and _is_overwritten(name, source)
    return Parameter(name, declaration, pointer, constant, written, overwritten)


def _is_written(name: str, source: str) -> bool:
    """Reports whether a pointer may be written through: any use but reading `name[...]`."""
    for found in re.finditer(rf"\b{re.escape(name)}\b", source):
        line = source[source.rfind("\n", 0, found.start()) + 1 : found.start()]
        if line.lstrip().startswith("#"):
            return True
        before = source[: found.start()].rstrip()
        # Declarations of this and of other functions.
        after = source[found.end() :].lstrip()
        if re.search(r"[*&]$|__restrict__$|\brestrict$", before) and re.match(r"[,)]", after) and _declares(before):
            continue
        if _is_read_by_call(before, source):
            continue
        if before.endswith("&") and not before.endswith("&&") or not after.startswith("["):
            return True
        # A function of the element may change it.
        if re.match(r"\s*(\.\s*\w+\s*)+(<[^<>;]*>\s*)?\(", after[_bracket_end(after) :]):
            return True
        # An element may be in parentheses of its own.
        rest = re.sub(r"^\s*(\.\w+\s*)+", "", after[_bracket_end(after) :]).lstrip(") \t\n")
        if _ASSIGNMENT.match(rest) or re.search(r"(\+\+|--)\s*\(*$", before) or _is_referred_to(before, source):
            return True
    return False


def _is_referred_to(before: str, source: str) -> bool:
    """Reports whether the text before an element binds a reference to it that may be written through: `float& r =`, or
    the call of a function that takes one, or of a macro that assigns."""
    bound = re.search(r"(?:^|[;{}(])([^;{}()=]*)&\s*\w+\s*[={(]\s*$", before)
    if bound is not None and re.search(r"\w", bound[1]):
        return re.search(r"\bconst\b", bound[1]) is None
    opening = _opening(before)
    call = re.search(r"(\w+)\s*(<[^<>;]*>\s*)?$", before[:opening])
    if call is None:
        # `Set()(a[i])`: an object that is called.
        made = re.search(r"(\w+)\s*\([^()]*\)\s*$", before[:opening])
        return made is not None and _BY_VALUE.fullmatch(made[1]) is None
    place = len(split_top(before[opening + 1 :])) - 1
    for names, body in _function_macros(source, call[1]):
        name = dict(enumerate(names.replace(" ", "").split(","))).get(place)
        if name and re.search(rf"\b{name}[\s)]*({_WRITE})|(\+\+|--)[\s(]*{name}\b", body):
            return True
    lists = re.findall(rf"\b{call[1]}\s*\(([^(){{}};]*)\)\s*(?:noexcept\s*)?{{", source)
    taken = [dict(enumerate(split_top(inside))).get(place, "") for inside in lists]
    # A lambda, an object that is called or constructed, or a function of a header.
    unknown = not lists and not _function_macros(source, call[1]) and _BY_VALUE.fullmatch(call[1]) is None
    return unknown or any("&" in each and re.search(r"\bconst\b", each) is None for each in taken)


def _opening(before: str) -> int:
    """Returns the place of the last parenthesis that a text leaves open, 0 without one."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        if before[place] in ";{}":
            return 0
        depth += {")": 1, "(": -1}.get(before[place], 0)
        if depth < 0:
            return place
    return 0


def _is_overwritten(name: str, source: str) -> bool:
    """Reports whether a pointer is only stored through: nothing reads what it points to."""
    for found in re.finditer(rf"\b{re.escape(name)}\b", source):
        before, after = source[: found.start()].rstrip(), source[found.end() :].lstrip()
        if re.search(r"[*&]$|__restrict__$|\brestrict$", before) and re.match(r"[,)]", after) and _declares(before):
            continue
        if not after.startswith("[") or not re.search(r"[;{})]$", before):
            return False
        if re.match(r"=(?!=)", after[_bracket_end(after) :].lstrip()) is None:
            return False
    return True


def _is_read_by_call(before: str, source: str) -> bool:
    """Reports whether the text before a name opens a call that only reads: a load, or a macro of loads."""
    call = re.search(r"(\w+)\s*\([^(){};=]*$", before)
    if call is None:
        return False
    if call[1] in _LOADS:
        return True
    # The macro may stand for the element that is written: `AT(o, i) = x`.
    opening = before.rfind("(")
    rest = source[opening + len(closed_list(source, opening) or "") + 2 :].lstrip()
    prefix = re.search(r"(&|\+\+|--)\s*$", before[: call.start()])
    if _ASSIGNMENT.match(rest) or rest.startswith(".") or prefix is not None and not prefix.string.rstrip().endswith("&&"):
        return False
    bodies = [body for _, body in _function_macros(source, call[1])]
    calls = [name for body in bodies for name in re.findall(r"(\w+)\s*\(", body)]
    plain = not any(re.search(r"=|\+\+|--|&", body) for body in bodies)
    return bool(bodies) and plain and all(name in _LOADS for name in calls)


def _declares(before: str) -> bool:
    """Reports whether the text before a name is that of a declaration: a type precedes the asterisk."""
    return re.search(r"[A-Za-z_>]\w*\s*(\bconst\b\s*)?[*&][\s*&]*(\b(__restrict__|restrict|const)\b\s*)*$", before) is not None


def _bracket_end(text: str) -> int:
    depth = 0
    for place, letter in enumerate(text):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth == 0:
            return place + 1
    return len(text)
