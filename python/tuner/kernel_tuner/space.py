"""A Kernel Tuner problem as a search space on disk: source, arguments and expected values as files.

`tuner check` and `tuner run` read it like any other search space.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple, Union

import numpy as np

from . import expressions, restrictions, signature, tables
from .arguments import declared_type, element_type
from .implicit import defines_macro, include_of
from .notices import warn
from .problem import Problem, folders_of_includes, included_files, read_source, with_copied_includes
from .spelling import argument_file, compile_options, ending_of, quoted, save_array, scalar, scalar_value
from .tables import Params
from .tunable_scalars import NoFittingList, converting, head_macros

#: Name of the file of a search space, and its first line.
SPACE_FILE = "space.yaml"
FIRST_LINE = "# Written by tuner.kernel_tuner."
_PROBLEM = "script"
_DIGEST_DIGITS = 8
_MAX_ATOL = 1e300
_AXES = ("x", "y", "z")
_DEFAULT_THREADS = 256
# Sources that are written beside the files of a script.
_WRITTEN = re.compile(r"(kernel|source(_\d+)?|reference)\.cu")
# A vector of CUDA with its number of elements.
_VECTOR = re.compile(r"\bu?(?:char|short|int|long|longlong|float|double)([1-4])\b")


class UnusedParameterWarning(UserWarning):
    """A parameter that neither the source nor an option mentions."""


@dataclass
class Reference:
    """The expected values of a search space."""

    #: Contents of arguments, by place.
    values: Mapping[int, Any] = field(default_factory=dict)
    #: Absolute tolerance of values.
    atol: Optional[float] = None
    #: Name under which the values were accepted: results with this name rank together.
    accepted_as: Optional[str] = None
    #: A configuration whose outputs are the expected values.
    configuration: Optional[Params] = None


class Export:
    """Writes a problem to a folder."""

    def __init__(self, problem: Problem, folder: Union[str, Path]) -> None:
        self.problem = problem
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        #: A further constraint, for configurations whose results are known.
        self.excluded: Optional[str] = None
        #: Expected values of the search space that was written last.
        self.reference: Optional[Reference] = None
        #: Unordered writes of equal values are not a hazard.
        self.same_value_writes = False
        self._complete = restrictions.completion(problem.tune_params, problem.rules, problem.block_size_names)
        self._derived: Dict[str, str] = {}
        self._constraints: List[Tuple[str, str]] = []
        self._write_sources()
        self._write_arguments()
        sizes = self._problem_size()
        #: Name of the problem, another one for other sizes.
        self.problem_name = self._name_problem(sizes)
        self._grid, self._block, self._shared = self._launch(sizes)
        self._translate_rules()

    def write(
        self,
        reference: Optional[Reference] = None,
        *,
        name: str = SPACE_FILE,
        configuration: Optional[Params] = None,
    ) -> Path:
        """Writes the search space and returns its path.

        :param configuration: the only configuration of the space
        """
        problem = self.problem
        lines = [
            FIRST_LINE,
            "version: 1",
            f"kernel: {quoted(signature.base_name(problem.kernel_name))}",
            "source: kernel.cu",
            f"problems: {{ {self.problem_name}: {{ }} }}",
        ]
        if problem.tune_params:
            lines.append("parameters:")
        first = configuration or (reference.configuration if reference else None) or problem.first
        for key, values in problem.tune_params.items():
            listed = [first[key]] if configuration else values
            texts = ", ".join(scalar(value) for value in listed)
            lines.append(f"  {problem.names[key]}: {{ values: [{texts}], default: {scalar(first[key])} }}")
        if self._derived:
            lines.append("derived:")
            lines += [f"  {key}: {quoted(text)}" for key, text in self._derived.items()]
        constraints = [] if configuration else list(self._constraints)
        if self.excluded and not configuration:
            constraints.append((self.excluded, "its result is in the cache file"))
        if constraints:
            lines.append("constraints:")
            lines += [f"  - {{ rule: {quoted(rule)}, why: {quoted(why)} }}" for rule, why in constraints]
        lines += self._arguments(reference)
        lines += self._variables()
        lines += ["launches:", f"  - {{ {self._launch_keys()} }}"]
        lines += self._reference(reference)
        lines += self._gate(reference)
        lines += self._compile()
        path = self.folder / name
        if name == SPACE_FILE:
            self.reference = reference
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    # Sources

    def _write_sources(self) -> None:
        problem = self.problem
        source = problem.kernel_source
        more = list(source[1:]) if isinstance(source, (list, tuple)) else []
        main = source[0] if isinstance(source, (list, tuple)) else source
        copies: Dict[str, Path] = {}
        included = included_files(problem.source, source, problem.compiler_options)
        more += [file for file in included if _WRITTEN.fullmatch(file.name)]
        for number, each in enumerate(dict.fromkeys(map(Path, more))):
            # Files of two folders, and those that are written here, may have the same name.
            taken = each.name in copies or _WRITTEN.fullmatch(each.name)
            copies[f"included_{number}_{each.name}" if taken else each.name] = each
        copied = {name: with_copied_includes(read_source(file, {}), copies, file.parent) for name, file in copies.items()}
        self._sources: Dict[str, str] = {}
        self._converted = problem.converted_scalars()
        if callable(main):
            includes = self._write_generated(main, copies)
        else:
            self._sources["source.cu"] = with_copied_includes(problem.first_source, copies)
            includes = '#include "source.cu"\n'
        written = {file.resolve() for file in copies.values()}
        self._convert_scalars(copied, [text for file, text in problem.included.items() if file not in written])
        for name, text in copied.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        if problem.defines is None:
            self._derive_defaults()
        preamble = self._defines() + "".join(self._unroll(name) for name in problem.tune_params)
        self.preamble = preamble
        implicit = include_of("\n".join([problem.source, *self._sources.values()]))
        (self.folder / "kernel.cu").write_text(implicit + preamble + includes, encoding="utf-8")
        for name, text in self._sources.items():
            (self.folder / name).write_text(self._unrolled(text), encoding="utf-8")
        self._warn_of_unused()

    def _convert_scalars(self, copied: Dict[str, str], outside: List[str]) -> None:
        """Lets the kernel convert the scalars whose type a parameter chooses.

        :param copied: texts of files that are written, by name
        :param outside: texts of other files
        """
        problem = self.problem
        others = {}
        if callable(problem.kernel_source):
            others = problem.scalars_of_other_types([*self._sources.values(), *copied.values()])
            self._converted.update(others)
        conversions = []
        failed: Set[int] = set()
        macros = head_macros(problem.source)
        # A declaration that stays as it is declares another function.
        unwritten = {str(number): text for number, text in enumerate(outside)}
        for sources in (self._sources, copied, unwritten) if self._converted else ():
            for name, text in sources.items():
                parameters = problem.parameters_in(text) or problem.parameters
                types = {place: kind for place, kind in self._converted.items() if not problem.takes_given(place, parameters)}
                try:
                    conversion = converting(text, problem.kernel_name, types, parameters, macros) if types else None
                except NoFittingList:
                    failed.update(types)
                    continue
                if conversion is not None and sources is not unwritten:
                    conversions.append((sources, name, conversion))
                elif conversion is not None and conversion.text != text:
                    failed.update(types)
        if failed or not any(conversion.defined for _, _, conversion in conversions):
            needed = [place for place in sorted(self._converted) if place in others or problem.has_varying_type(place)]
            if needed:
                declared = problem.parameters[needed[0]].text
                raise TypeError(
                    f"argument {needed[0]} is a scalar and a tunable parameter chooses the type of `{declared}`, which the kernel "
                    "converts only where its definition is in kernel_source, with its declarations, and its parameters and "
                    "instantiations are written without macros; give the parameter a fixed type"
                )
            # They have one type: their bytes are passed as before.
            self._converted = {}
            return
        for sources, name, conversion in conversions:
            sources[name] = conversion.text

    def _write_generated(self, generate: Callable[[Params], str], copies: Mapping[str, Path]) -> str:
        """Writes the different sources that a function returns, numbered."""
        problem = self.problem
        tune_params = problem.tune_params
        source = expressions.named(lambda params: read_source(generate, params), "the source function")
        tree = tables.grow(source, tune_params, self._complete)
        files: Dict[str, int] = {}
        for leaf in tables.leaves(tree):
            leaf.result = files.setdefault(leaf.result, len(files))
        self._sources.update({f"source_{number}.cu": with_copied_includes(text, copies) for text, number in files.items()})
        self._derived["KT_SOURCE"] = tables.render(tree, problem.names, str)
        lines = [
            f'#{"el" if number else ""}if KT_SOURCE == {number}\n#include "source_{number}.cu"\n'
            for number in files.values()
        ]
        return "".join(lines) + "#endif\n"

    def _derive_defaults(self) -> None:
        """Adds the macros that Kernel Tuner defines besides the parameters, where the source names them."""
        problem = self.problem
        text = "\n".join(self._sources.values())
        mentioned = set(re.findall(r"\w+", text))
        defaults = {name: str(_DEFAULT_THREADS if at == 0 else 1) for at, name in enumerate(problem.block_size_names)}
        for name, value in {**defaults, "kernel_tuner": "1"}.items():
            if name in mentioned and name not in problem.tune_params and not defines_macro(text, name):
                self._derived[name] = value
        self._grid_macros = [axis for axis in _AXES if f"grid_size_{axis}" in mentioned]

    def _defines(self) -> str:
        """Returns the definitions of the `defines` argument."""
        problem = self.problem
        text = ""
        for name, value in (problem.defines or {}).items():
            if not name.isidentifier():
                raise ValueError(f"the name {name!r} in defines is not an identifier; correct it")
            if callable(value):
                derived = f"KT_DEFINE_{name}"
                what = f"the function of {name} in defines"
                self._derived[derived] = self._translated(value, what)[0]
                value = derived
            body = expressions.replace_params(str(value), problem.names).replace("\n", "\\\n")
            text += f"#define {name} {body}\n"
        return text

    def _unroll(self, name: str) -> str:
        """Returns the macro that replaces `#pragma unroll loop_unroll_factor_…`: 0 leaves the loop to the
        compiler."""
        if "loop_unroll_factor" not in name or self.problem.defines is not None:
            return ""
        return (
            "#define KT_PRAGMA(text) _Pragma(#text)\n#define KT_UNROLL(count) KT_PRAGMA(unroll count)\n"
            f"#if {name} == 0\n#define KT_UNROLL_{name}\n#else\n"
            f"#define KT_UNROLL_{name} KT_UNROLL({name})\n#endif\n"
        )

    def _unrolled(self, source: str) -> str:
        for name in self.problem.tune_params:
            if "loop_unroll_factor" in name:
                pattern = rf"(?m)^([ \t]*)#[ \t]*pragma[ \t]+unroll[ \t]*\(?[ \t]*{name}[ \t]*\)?[ \t]*$"
                source = re.sub(pattern, rf"\g<1>KT_UNROLL_{name}", source)
        return source

    def _warn_of_unused(self) -> None:
        problem = self.problem
        if callable(problem.kernel_source) or problem.defines is not None:
            return
        options = [problem.problem_size, problem.grid_div, problem.smem_args, problem.compiler_options, problem.kernel_name]
        if any(callable(each) for each in [problem.problem_size, *problem.grid_div]):
            return
        text = " ".join([*self._sources.values(), repr(options), *problem.block_size_names])
        used = set(re.findall(r"\w+", text))
        for name, values in problem.tune_params.items():
            if name not in used and len(values) > 1:
                warn(
                    UnusedParameterWarning,
                    f"the parameter {name} is used neither in the source nor in an option; remove it from tune_params",
                )

    # Data

    def _write_arguments(self) -> None:
        for place, argument in enumerate(self.problem.passed):
            if isinstance(argument, np.ndarray):
                save_array(self.folder / argument_file(place, argument), argument)

    def _arguments(self, reference: Optional[Reference]) -> List[str]:
        problem = self.problem
        changed = {*problem.outputs(), *(reference.values if reference else ())}
        lines = ["arguments:"] if problem.arguments else ["arguments: []"]
        for place, argument in enumerate(problem.passed):
            name = self.argument_name(place)
            where = f"argument {place}"
            if isinstance(argument, np.ndarray):
                kind = declared_type(argument.dtype, where, problem.declaration(place))
                role = "inout" if place in changed else "input"
                fill = f", fill: {{ file: {quoted(argument_file(place, argument))} }}"
                if reference is not None and place in problem.scratch - set(reference.values):
                    role, fill = "scratch", ""
                # A buffer without elements has an address on no device.
                size = max(1, argument.size)
                kind += ", any_type: true" if problem.takes_any_type(place) else ""
                lines.append(f"  - {{ name: {name}, type: {kind}, role: {role}, shape: [{size}]{fill} }}")
            else:
                # The kernel converts what the script gives.
                argument = problem.arguments[place] if place in self._converted else argument
                declared = self._converted.get(place) or problem.declaration(place)
                kind = declared_type(argument.dtype, where, declared)
                lines.append(f"  - {{ name: {name}, type: {kind}, role: scalar, value: {scalar_value(argument, where, kind)} }}")
        return lines

    def argument_name(self, place: int) -> str:
        """Returns the name of an argument: that of the kernel's parameter, where no other value has it."""
        name = self.problem.parameters[place].name
        names = [each.name for each in self.problem.parameters]
        taken = {*self.problem.names.values(), *self._derived}
        return name if name and names.count(name) == 1 and name not in taken else f"argument_{place}"

    def _variables(self) -> List[str]:
        lines = []
        for name, value in (self.problem.cmem_args or {}).items():
            where = f"{name} in cmem_args"
            kind = element_type(value.dtype, where)
            if isinstance(value, np.ndarray):
                value = self._padded(name, value)
                file = f"constant_{name}" + ending_of(value)
                save_array(self.folder / file, value)
                lines.append(f"  {name}: {{ type: {kind}, shape: [{value.size}], fill: {{ file: {quoted(file)} }} }}")
            else:
                lines.append(f"  {name}: {{ type: {kind}, value: {scalar_value(value, where)} }}")
        return ["variables:", *lines] if lines else []

    def _padded(self, name: str, value: Any) -> Any:
        """Returns constant data as large as the array in the source: Kernel Tuner sets its beginning."""
        problem = self.problem
        declared = re.search(rf"__constant__[^;=]*\b{re.escape(name)}\b", problem.source)
        if declared is None and "##" not in problem.source:
            raise ValueError(f"{name} in cmem_args is not a `__constant__` variable of the source; correct its name")
        found = re.search(rf"__constant__([^;=]*)\b{re.escape(name)}\s*((?:\[[0-9\s*+()-]+\])+)", problem.source)
        if found is None:
            return value.ravel()
        extents = re.findall(r"\[([^\]]+)\]", found[2])
        vector = re.search(_VECTOR, found[1])
        lanes = int(vector[1]) if vector and value.dtype.kind != "c" else 1
        size = lanes * math.prod(int(expressions.evaluate(extent, {})) for extent in extents)
        if value.size > size:
            raise ValueError(f"{name} in cmem_args has {value.size} elements and the source declares {size}; pass as many")
        padded = np.zeros(size, dtype=value.dtype)
        padded[: value.size] = value.ravel()
        return padded

    # Launch

    def _name_problem(self, sizes: List[str]) -> str:
        """Returns the name of the problem by its size, and by the sizes of the arguments: results of two problems of
        one name displace each other in the database."""
        described = [
            [value.dtype.str, value.shape] if isinstance(value, np.ndarray) else [value.dtype.str, str(value)]
            for value in self.problem.passed
        ]
        digest = hashlib.sha256(json.dumps([sizes, described]).encode()).hexdigest()[:_DIGEST_DIGITS]
        numbers = [size for size in sizes if size.isdigit() and size != "1"]
        return "_".join([_PROBLEM, *numbers, digest])

    def _launch(self, sizes: List[str]) -> Tuple[List[str], List[str], Optional[str]]:
        problem = self.problem
        grid = []
        for axis, (size, divisor) in enumerate(zip(sizes, problem.grid_div)):
            text = self._divisor(divisor, problem.block_size_names[axis])
            grid.append(size if text == "1" else f"ceil({size} / {text})")
        for axis in getattr(self, "_grid_macros", []):
            self._derived[f"grid_size_{axis}"] = grid[_AXES.index(axis)]
        block = []
        for axis, name in enumerate(problem.block_size_names):
            default = str(_DEFAULT_THREADS if axis == 0 else 1)
            block.append(self._number_of(name) if name in problem.names else default)
        return grid, block, self._shared_bytes()

    def _problem_size(self) -> List[str]:
        problem = self.problem
        size = problem.problem_size
        if callable(size):
            texts = [f"int({text})" for text in self._translated(expressions.with_numbers(size), "problem_size")]
        else:
            listed = size if isinstance(size, (tuple, list)) or isinstance(size, np.ndarray) else (size,)
            texts = [self._extent(each) for each in listed]
        if not 1 <= len(texts) <= 3:
            raise ValueError(f"problem_size has {len(texts)} dimensions; give one to three")
        return texts + ["1"] * (3 - len(texts))

    def _extent(self, size: Any) -> str:
        if isinstance(size, str):
            return f"int({self._translated(size, 'problem_size')[0]})"
        if isinstance(size, (int, np.integer)) and not isinstance(size, bool):
            return str(int(size))
        raise TypeError(f"problem_size has an element of type {type(size).__name__}; give a whole number, a text or a function")

    def _divisor(self, divisor: Any, default: str) -> str:
        if divisor is None:
            return self._number_of(default) if default in self.problem.names else "1"
        if isinstance(divisor, (int, np.integer)):
            return str(int(divisor))
        if isinstance(divisor, str):
            text = self._translated(divisor, "grid_div")[0]
            return text if text.isidentifier() else f"int({text})"
        if callable(divisor):
            return f"({self._translated(divisor, 'grid_div')[0]})"
        if np.iterable(divisor):
            texts = [self._divisor(each, default) for each in divisor]
            return f"({' * '.join(texts)})" if len(texts) > 1 else (texts or ["1"])[0]
        raise TypeError(f"grid_div is of type {type(divisor).__name__}; give a list of texts, a function or None")

    def _number_of(self, name: str) -> str:
        """Returns the expression of a parameter's value as a number, which a text may spell."""
        texts = expressions.reads_number_texts(name, self.problem.tune_params)
        return self._translated(name, name)[0] if texts else self.problem.names[name]

    def _shared_bytes(self) -> Optional[str]:
        size = (self.problem.smem_args or {}).get("size")
        if size is None:
            return None
        if isinstance(size, str) or callable(size):
            return f"int({self._translated(size, 'smem_args')[0]})"
        return str(int(size))

    def _translated(self, source: Any, what: str, pad: Optional[str] = None) -> List[str]:
        problem = self.problem
        return expressions.translate(source, problem.tune_params, problem.names, what, self._complete, pad)

    def _translate_rules(self) -> None:
        problem = self.problem
        self._constraints.append((f"{' * '.join(self._block)} <= DEVICE_MAX_THREADS", "threads of a block"))
        for at, rule in enumerate(problem.rules):
            complete = restrictions.completion(problem.tune_params, problem.rules[:at], problem.block_size_names)
            text = restrictions.translate(rule, problem.tune_params, problem.names, complete)
            self._constraints.append((text, f"restriction {rule.text}"))

    def _launch_keys(self) -> str:
        entry = expressions.replace_params(
            self.problem.kernel_name, {name: f"{{{self.problem.names[name]}}}" for name in self.problem.names}
        )
        text = f"entry: {quoted(entry)}, grid: [{', '.join(map(quoted, self._grid))}], "
        text += f"block: [{', '.join(map(quoted, self._block))}]"
        return text if self._shared is None else f"{text}, shared: {quoted(self._shared)}"

    # Reference

    def _reference(self, reference: Optional[Reference]) -> List[str]:
        if reference is None:
            return ["reference: none"]
        if reference.configuration is not None:
            # It is compiled with the macros of the default configuration. Results with another one are not
            # comparable, so it is another source.
            named = ", ".join(f"{name}={value!r}" for name, value in reference.configuration.items())
            text = f'// The configuration {quoted(named)}.\n#include "kernel.cu"\n'
            (self.folder / "reference.cu").write_text(text, encoding="utf-8")
            return [f"reference: {{ source: reference.cu, {self._launch_keys()} }}"]
        files = []
        for place, value in reference.values.items():
            value = value.view(self.problem.passed[place].dtype)
            file = f"expected_{place}{ending_of(value)}"
            save_array(self.folder / file, value)
            files.append(f"{self.argument_name(place)}: {quoted(file)}")
        accepted = f", accepted_as: {quoted(reference.accepted_as)}" if reference.accepted_as else ""
        return [f"reference: {{ values: {{ {', '.join(files)} }}{accepted} }}"]

    def _gate(self, reference: Optional[Reference]) -> List[str]:
        gate = ["deterministic: false"] if self._has_atomics() else []
        if reference is not None and reference.atol is not None:
            # Any difference is allowed by an infinite one.
            gate += [f"atol: {min(float(reference.atol), _MAX_ATOL)!r}", "rtol: 1.0e-5"]
        if self.same_value_writes:
            gate.append("same_value_writes: allow")
        return [f"gate: {{ {', '.join(gate)} }}"] if gate else []

    def _has_atomics(self) -> bool:
        return any("atomic" in text for text in [self.problem.source, *self._sources.values()])

    def _compile(self) -> List[str]:
        options, include = compile_options(self.problem.compiler_options, self.problem.names, self.problem.tune_params)
        # Plain functions of the host are compiled too, as by nvcc.
        options = list(dict.fromkeys(["--device-as-default-execution-space", *options]))
        include += folders_of_includes("\n".join(self._sources.values()), self.problem.kernel_source)
        keys = [f"options: [{', '.join(map(quoted, options))}]"]
        if include:
            keys.append(f"include: [{', '.join(map(quoted, include))}]")
        return [f"compile: {{ {', '.join(keys)} }}"]
