"""The arguments of `tune_kernel` that describe a kernel, and its source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from . import restrictions, signature, spelling
from .arguments import scalars_at
from .conversions import convert_arguments, declared_dtype, type_key
from .expressions import named, replace_params
from .notices import warn
from .tables import Params, Reader
from .tunable_scalars import is_converted, passed_type
from .tunable_types import choosers

_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]')


class UnknownSignatureWarning(UserWarning):
    """A kernel whose parameters are not found in the source."""


@dataclass
class Problem:
    """The arguments of `tune_kernel` that describe a kernel."""

    kernel_name: str
    kernel_source: Any
    problem_size: Any
    arguments: List[Any]
    tune_params: Dict[str, List[Any]]
    rules: List[restrictions.Restriction] = field(default_factory=list)
    grid_div: Sequence[Any] = (None, None, None)
    block_size_names: List[str] = field(default_factory=lambda: list(_BLOCK_NAMES))
    smem_args: Optional[Mapping[str, Any]] = None
    cmem_args: Optional[Mapping[str, Any]] = None
    compiler_options: Sequence[str] = ()
    defines: Optional[Mapping[str, Any]] = None

    def __post_init__(self) -> None:
        if not self.kernel_name.strip():
            raise ValueError("kernel_name is empty; give the name of a `__global__` function")
        for name in self.tune_params:
            if not name.isidentifier():
                raise ValueError(f"the parameter {name!r} is not an identifier; rename it")
        names = self.block_size_names
        #: First valid configuration.
        self.first: Params = restrictions.first_configuration(self.tune_params, self.rules, names)
        #: Name of each parameter in the search space. With `defines` they are no macros of the source.
        prefix = "KT_" if self.defines is not None else ""
        self.names = {name: prefix + name for name in self.tune_params}
        #: Places of arguments that the kernel was seen to leave as they are.
        self.unchanged: Set[int] = set()
        #: Places of outputs that are not compared and begin without contents.
        self.scratch: Set[int] = set()
        self.first_source = self._read_first()
        #: Texts of the files that the source of that configuration includes, and all in one.
        self.included = included_texts(self.first_source, self.kernel_source, self.compiler_options)
        self.source = "\n".join([*self.included.values(), self.first_source])
        self.parameters = self._parameters()
        self.arguments = scalars_at(self.arguments, [parameter.pointer for parameter in self.parameters])
        #: Arguments as the parameters take them.
        self.passed = convert_arguments(self.parameters, self.arguments)

    def _read_first(self) -> str:
        """Returns the source of the first configuration."""
        main = self.kernel_source[0] if isinstance(self.kernel_source, (list, tuple)) else self.kernel_source
        if callable(main):
            return str(named(lambda params: read_source(main, params), "the source function")(self.first))
        return read_source(main, self.first)

    def _parameters(self) -> List[signature.Parameter]:
        try:
            parameters = signature.parameters_of(self.source, self.kernel_name)
        except ValueError:
            if not signature.may_be_elsewhere(self.source, self.kernel_name):
                raise
            return self._unknown_parameters("is not found in the source or its included files")
        if any("#" in each.text for each in parameters):
            both = [signature.parameters_of(self.source, self.kernel_name, each) for each in (False, True)]
            parameters = next((each for each in both if len(each) == len(self.arguments)), parameters)
        if len(parameters) != len(self.arguments):
            listed = ", ".join(each.text for each in parameters) or "none"
            if any("#" in each.text for each in parameters):
                return self._unknown_parameters(f"has parameters under conditions ({listed})")
            if any(re.fullmatch(r"[A-Za-z_]\w*", each.text) for each in parameters):
                return self._unknown_parameters(f"has parameters by macros ({listed})")
            raise ValueError(
                f"`{self.kernel_name}` takes {len(parameters)} arguments ({listed}) and {len(self.arguments)} are "
                "given; give one for each, in order"
            )
        for place, (parameter, argument) in enumerate(zip(parameters, self.arguments)):
            if parameter.pointer and not isinstance(argument, np.ndarray):
                kind = "None" if argument is None else "a scalar"
                raise TypeError(f"argument {place} is {kind} and `{parameter.text}` is a pointer; pass an array")
            structs = isinstance(argument, np.ndarray) and argument.ndim and argument.dtype.fields
            if structs and not parameter.pointer and not signature.is_pointer_alias(parameter, self.source):
                raise TypeError(
                    f"argument {place} is an array of structs and `{parameter.text}` is one struct; pass an element, "
                    f"such as `{parameter.name or 'array'}[0]`"
                )
            if declared_dtype(parameter) is not None and not parameter.pointer and np.ndim(argument):
                raise TypeError(f"argument {place} is an array and `{parameter.text}` is a scalar; pass one, such as array[0]")
        return parameters

    def _unknown_parameters(self, why: str) -> List[signature.Parameter]:
        """Returns parameters that fit the arguments: each array may be written."""
        warn(UnknownSignatureWarning, f"the kernel `{self.kernel_name}` {why}: all arrays count as outputs")
        arrays = [isinstance(argument, np.ndarray) for argument in self.arguments]
        return [signature.Parameter(None, f"argument {at}", array, False, array) for at, array in enumerate(arrays)]

    def declaration(self, place: int) -> str:
        """Returns the declaration of a parameter of the kernel for the first configuration."""
        return replace_params(self.parameters[place].text, self.first)

    def takes_any_type(self, place: int) -> bool:
        """Reports whether the bytes of an array are passed as elements of another type: of one that a parameter
        chooses, or of a plain one that is not the array's."""
        declared = declared_dtype(self.parameters[place])
        if declared is not None:
            dtype = np.dtype(self.passed[place].dtype)
            return bool(declared.itemsize == dtype.itemsize and declared != dtype)
        tunable = {*self.tune_params, *(self.defines or ())}
        parameter = self.parameters[place]
        return parameter.pointer and signature.may_point_to_tunable_type(parameter, self.source, self.kernel_name, tunable)

    def converted_scalars(self) -> Dict[int, str]:
        """Returns the scalars whose type a parameter chooses, by place, with the types of C in which they are passed."""
        tunable = {*self.tune_params, *(self.defines or ())}
        found = {}
        for place, (parameter, argument) in self._scalars(self.parameters):
            if tunable.isdisjoint(choosers(parameter, self.source, self.kernel_name, numbers=True)):
                continue
            # What is no plain number keeps its bytes where its type is the same in each configuration.
            if is_converted(argument) or self.has_varying_type(place):
                found[place] = passed_type(place, parameter, argument)
        return found

    def has_varying_type(self, place: int) -> bool:
        """Reports whether a scalar has different types in different configurations."""
        names = choosers(self.parameters[place], self.source, self.kernel_name, numbers=False)
        for name in names.intersection(self.defines or ()):
            value = (self.defines or {})[name]
            if callable(value):
                return True
            names.update(signature.IDENTIFIER.findall(str(value)))
        return any(len({type_key(value) for value in self.tune_params[name]}) > 1 for name in names.intersection(self.tune_params))

    def scalars_of_other_types(self, sources: Iterable[str]) -> Dict[int, str]:
        """Returns the scalars that generated sources declare in different types, by place, with the types of C in which
        they are passed."""
        found = {}
        for source in sources:
            for place, (parameter, argument) in self._scalars(self.parameters_in(source)):
                declared = declared_dtype(parameter)
                if declared is not None and declared != self.passed[place].dtype:
                    # The argument of the script: the first source may have converted it.
                    found[place] = passed_type(place, parameter, argument)
        return found

    def parameters_in(self, source: str) -> List[signature.Parameter]:
        """Returns the parameters in a generated source, none if the kernel is in a file that it includes."""
        try:
            return signature.parameters_of(source, self.kernel_name)
        except ValueError:
            return []

    def takes_given(self, place: int, parameters: Sequence[signature.Parameter]) -> bool:
        """Reports whether parameters of the kernel take a scalar in the type that the script gives."""
        if len(parameters) != len(self.arguments):
            # Another kernel of this name.
            return True
        declared = declared_dtype(parameters[place])
        # NumPy takes None for float64.
        return declared is not None and bool(declared == self.arguments[place].dtype)

    def _scalars(self, parameters: Sequence[signature.Parameter]) -> Iterator[Tuple[int, Tuple[signature.Parameter, Any]]]:
        """Yields the scalars with a name, by place, with their arguments."""
        for place, (parameter, argument) in enumerate(zip(parameters, self.arguments)):
            if isinstance(argument, np.generic) and not parameter.pointer and parameter.name:
                yield place, (parameter, argument)

    def outputs(self) -> List[int]:
        """Returns the places of the arguments that the kernel may write."""
        return [
            place
            for place, (parameter, argument) in enumerate(zip(self.parameters, self.arguments))
            if isinstance(argument, np.ndarray) and parameter.written and place not in self.unchanged
        ]


def included_texts(source: str, kernel_source: Any, compiler_options: Sequence[str]) -> Dict[Path, str]:
    """Returns the texts of the files that a source includes, as far as they are found."""
    folders = _source_folders(kernel_source) + _include_folders(compiler_options)
    texts: Dict[Path, str] = {}

    def follow(text: str, beside: Sequence[Path]) -> None:
        for name in _INCLUDE.findall(text):
            file = _first_file(name, [*beside, *folders])
            if file is not None and file.resolve() not in texts:
                texts[file.resolve()] = found = file.read_text(encoding="utf-8", errors="replace")
                follow(found, [file.parent])

    follow(source, [])
    return texts


def _first_file(name: str, folders: Sequence[Path]) -> Optional[Path]:
    """Returns the file of this name in the first of the folders that has one."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _source_folders(kernel_source: Any) -> List[Path]:
    """Returns the folders of the source files, and the working folder."""
    listed = kernel_source if isinstance(kernel_source, (list, tuple)) else [kernel_source]
    files = [Path(each) for each in listed if isinstance(each, Path) or looks_like_a_filename(each)]
    return [*dict.fromkeys([*(file.parent for file in files), Path(".")])]


def included_files(text: str, kernel_source: Any, compiler_options: Sequence[str]) -> List[Path]:
    """Returns the files that a text includes, as far as they are found."""
    folders = _source_folders(kernel_source) + _include_folders(compiler_options)
    found = [_first_file(name, folders) for name in _INCLUDE.findall(text)]
    return [file for file in found if file is not None]


def folders_of_includes(text: str, kernel_source: Any) -> List[str]:
    """Returns the folders of the source files, and the working folder, as far as they have a file that a text
    includes by its name in quotes: `<math.h>` is the compiler's, whatever lies there."""
    quoted = [found[1] for found in _INCLUDE.finditer(text) if '"' in found[0]]
    folders = [folder for folder in _source_folders(kernel_source) if any((folder / name).is_file() for name in quoted)]
    return [str(folder.resolve()) for folder in folders]


def with_copied_includes(text: str, copies: Mapping[str, Path], folder: Optional[Path] = None) -> str:
    """Returns a source whose includes name the copies of files.

    :param copies: files by the names of their copies
    :param folder: that of the source, whose files come first
    """

    def replaced(found: "re.Match[str]") -> str:
        wanted = Path(found[1])
        beside = (folder / wanted).resolve() if folder is not None else None
        names = [name for name, file in copies.items() if file.resolve() == beside]
        # A name of the compiler's own headers (`<math.h>`) is a file of the script only with its folders.
        if '"' in found[0] or len(wanted.parts) > 1:
            names += [name for name, file in copies.items() if file.parts[-len(wanted.parts) :] == wanted.parts]
        return f'#include "{names[0]}"' if names else found[0]

    return _INCLUDE.sub(replaced, text)


def _include_folders(options: Sequence[str]) -> List[Path]:
    return [Path(word[2:]) for word in spelling.option_words(options) if word.startswith("-I") and len(word) > 2]


def read_source(kernel_source: Any, params: Params) -> str:
    """Returns the source of a configuration: a text, a file, the first of several files, or a function."""
    if isinstance(kernel_source, (list, tuple)):
        kernel_source = kernel_source[0]
    if callable(kernel_source):
        # What records the reads of a function is passed as it is.
        text = kernel_source(params if isinstance(params, Reader) else dict(params))
        if not isinstance(text, str):
            raise TypeError(f"the source function returned {type(text).__name__} for {params}; return the source text")
        return text
    if isinstance(kernel_source, Path) or looks_like_a_filename(kernel_source):
        try:
            return Path(kernel_source).read_text(encoding="utf-8")
        except OSError as error:
            raise FileNotFoundError(f"cannot read the source {kernel_source}: {error}; correct kernel_source") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"the source {kernel_source} is not text in UTF-8 ({error}); convert it") from error
    if isinstance(kernel_source, str):
        return kernel_source
    raise TypeError("kernel_source is neither a text, a file, a list of files nor a function")


def looks_like_a_filename(kernel_source: Any) -> bool:
    """Reports whether a text is the name of a source file and not source."""
    if not isinstance(kernel_source, str) or len(kernel_source) > 250:
        return False
    # A directive, such as the one that includes the file of the kernel.
    if any(letter in kernel_source for letter in "();{}\\\n") or kernel_source.lstrip().startswith("#"):
        return False
    if any(word in kernel_source for word in ("__global__ ", "__kernel ", "void ", "float ")):
        return False
    return any(ending in kernel_source for ending in (".c", ".opencl", ".F"))
