//! Host compiler headers that NVRTC lacks, provided from memory: the part of each that kernels
//! can use, as in Jitify. A file that includes `<stdio.h>` for its host code compiles unchanged.

use super::template::{Header, Template, definitions, included_macros, included_names};
use tuner_core::units::ContentHash;

/// Headers with content that kernels use.
const HEADERS: [(&str, &str); 31] = [
    ("algorithm", include_str!("host_headers/algorithm")),
    ("array", include_str!("host_headers/array")),
    ("assert.h", include_str!("host_headers/assert.h")),
    ("complex", include_str!("host_headers/complex")),
    ("cub/cub.cuh", include_str!("host_headers/cub.cuh")),
    ("cuda.h", include_str!("host_headers/cuda.h")),
    (
        "cuda_runtime.h",
        include_str!("host_headers/cuda_runtime.h"),
    ),
    ("float.h", include_str!("host_headers/float.h")),
    ("functional", include_str!("host_headers/functional")),
    ("limits", include_str!("host_headers/limits")),
    ("limits.h", include_str!("host_headers/limits.h")),
    ("math.h", include_str!("host_headers/math.h")),
    ("stddef.h", include_str!("host_headers/stddef.h")),
    ("stdint.h", include_str!("host_headers/stdint.h")),
    ("stdio.h", include_str!("host_headers/stdio.h")),
    ("stdlib.h", include_str!("host_headers/stdlib.h")),
    ("string.h", include_str!("host_headers/string.h")),
    ("sys/types.h", include_str!("host_headers/types.h")),
    ("tuple", include_str!("host_headers/tuple")),
    ("type_traits", include_str!("host_headers/type_traits")),
    ("utility", include_str!("host_headers/utility")),
    ("bit", include_str!("host_headers/bit")),
    ("concepts", include_str!("host_headers/concepts")),
    (
        "initializer_list",
        include_str!("host_headers/initializer_list"),
    ),
    ("iterator", include_str!("host_headers/iterator")),
    ("numbers", include_str!("host_headers/numbers")),
    ("numeric", include_str!("host_headers/numeric")),
    ("optional", include_str!("host_headers/optional")),
    ("span", include_str!("host_headers/span")),
    ("variant", include_str!("host_headers/variant")),
    // NVIDIA's own includes an nvcc-only header.
    ("device_functions.h", "#include <cuda_runtime.h>\n"),
];

/// Aliases of these, and headers with the device-safe part of another one.
const ALIASES: [(&str, &str); 15] = [
    ("cassert", "assert.h"),
    ("cfloat", "float.h"),
    ("cinttypes", "stdint.h"),
    ("climits", "limits.h"),
    ("cmath", "math.h"),
    ("cstddef", "stddef.h"),
    ("cstdint", "stdint.h"),
    ("cstdio", "stdio.h"),
    ("cstdlib", "stdlib.h"),
    ("cstring", "string.h"),
    ("inttypes.h", "stdint.h"),
    ("malloc.h", "stdlib.h"),
    ("memory.h", "string.h"),
    ("strings.h", "string.h"),
    ("values.h", "float.h"),
];

/// Headers without content for kernels: only the include must succeed.
const HOST_ONLY: [&str; 94] = [
    "any",
    "atomic",
    "bitset",
    "cctype",
    "cerrno",
    "cfenv",
    "charconv",
    "chrono",
    "clocale",
    "compare",
    "condition_variable",
    "csignal",
    "cstdarg",
    "ctime",
    "ctype.h",
    "cublas_v2.h",
    "cublasLt.h",
    "cuda_profiler_api.h",
    "cudaProfiler.h",
    "cudnn.h",
    "cufft.h",
    "curand.h",
    "cusolverDn.h",
    "cusparse.h",
    "cwchar",
    "cwctype",
    "deque",
    "dirent.h",
    "errno.h",
    "exception",
    "execution",
    "fcntl.h",
    "fenv.h",
    "filesystem",
    "format",
    "forward_list",
    "fstream",
    "future",
    "getopt.h",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "list",
    "locale",
    "locale.h",
    "map",
    "memory",
    "memory_resource",
    "mpi.h",
    "mutex",
    "nccl.h",
    "new",
    "nvml.h",
    "nvToolsExt.h",
    "nvtx3/nvToolsExt.h",
    "omp.h",
    "ostream",
    "pthread.h",
    "queue",
    "random",
    "ranges",
    "ratio",
    "regex",
    "scoped_allocator",
    "semaphore",
    "set",
    "shared_mutex",
    "signal.h",
    "source_location",
    "sstream",
    "stack",
    "stdarg.h",
    "stdbool.h",
    "stdexcept",
    "stop_token",
    "string",
    "string_view",
    "sys/resource.h",
    "sys/stat.h",
    "sys/time.h",
    "system_error",
    "thread",
    "time.h",
    "typeindex",
    "typeinfo",
    "unistd.h",
    "unordered_map",
    "unordered_set",
    "valarray",
    "vector",
    "version",
    "wchar.h",
];

/// Text of a header without a device-safe part; `using namespace std;` may follow it.
const EMPTY: &str = "#pragma once\nnamespace std {}\n";

/// Reports whether a header of this name is provided from memory.
#[must_use]
pub fn is_host_header(spelled: &str) -> bool {
    names().any(|name| name == spelled)
}

/// Returns the header of this name that is provided from memory.
pub(super) fn named(spelled: &str) -> Option<Header> {
    names().find(|name| *name == spelled).map(header)
}

fn names() -> impl Iterator<Item = &'static str> {
    let headers = HEADERS.iter().map(|(name, _)| *name);
    let aliases = ALIASES.iter().map(|(name, _)| *name);
    headers.chain(aliases).chain(HOST_ONLY)
}

/// Returns the headers to add to a source that has these headers.
pub(super) fn beside(own: &[Header]) -> Vec<Header> {
    names()
        .filter(|name| own.iter().all(|header| header.spelled != *name))
        .map(header)
        .collect()
}

/// Returns the in-memory headers that a template includes, transitively, including conditional includes. A
/// program that compiles the template without this crate needs them.
#[must_use]
pub fn included_host_headers(template: &Template) -> Vec<Header> {
    let own = template.headers.iter();
    let mut texts: Vec<String> = own.map(|header| header.text.clone()).collect();
    texts.push(template.text.to_string());
    let mut included: Vec<Header> = Vec::new();
    while let Some(text) = texts.pop() {
        let mut spelled = included_names(&text);
        for name in included_macros(&text) {
            let values = definitions(&text, &name).into_iter();
            spelled.extend(values.flat_map(|value| included_names(&format!("#include {value}"))));
        }
        for (name, _) in spelled {
            let mut present = template.headers.iter().chain(&included);
            if present.any(|header| header.spelled == name) {
                continue;
            }
            if let Some(known) = names().find(|known| *known == name) {
                let header = header(known);
                texts.push(header.text.clone());
                included.push(header);
            }
        }
    }
    included.sort_by(|a, b| a.spelled.cmp(&b.spelled));
    included
}

/// Returns the in-memory header of one of [`names`].
fn header(name: &str) -> Header {
    let text = if let Some((_, text)) = HEADERS.iter().find(|(known, _)| *known == name) {
        (*text).to_owned()
    } else {
        match ALIASES.iter().find(|(alias, _)| *alias == name) {
            Some((_, real)) => format!("#include <{real}>\n"),
            None => EMPTY.to_owned(),
        }
    };
    Header {
        spelled: name.to_owned(),
        path: name.to_owned(),
        text,
    }
}

/// Returns the identity of all of them, for caching.
pub(super) fn hash() -> ContentHash {
    let parts = HEADERS.iter().chain(&ALIASES);
    let parts = parts.flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
    ContentHash::from_parts(parts.chain(HOST_ONLY.iter().map(|name| name.as_bytes())))
}

/// Returns advice if the compiler's messages concern headers or host code; empty otherwise.
pub(super) fn advice(log: &str) -> String {
    let mut advice = String::new();
    let mut add = |text: String| {
        if !advice.contains(&text) {
            advice.push_str(&text);
        }
    };
    for line in log.lines() {
        let quoted = |marker: &str| {
            let (_, rest) = line.split_once(marker)?;
            rest.split('"').next()
        };
        if let Some(file) = quoted("cannot open source file \"") {
            add(missing(file));
        } else if let Some((name, header)) =
            quoted("identifier \"").and_then(|name| Some((name, header_of(name)?)))
        {
            add(format!(
                "help: `{name}` is of a host header: write `#include <{header}>` (nvcc includes \
                 <cuda_runtime.h> by itself, NVRTC does not)\n"
            ));
        } else if let Some(name) = quoted("namespace \"std\" has no member \"") {
            add(format!(
                "help: `std::{name}` is host code; take the functions that use it out of the \
                 template (`tuner adopt FILE.cu` does), or use what <cuda/std/…> has\n"
            ));
        // NVRTC reports an invalid name expression as an error in this internal file.
        } else if line.starts_with("__nv_name_map") {
            add(
                "help: correct `entry` in the search space: a `__global__` function with its \
                 namespaces and all template arguments, as in `entry: \"ns::kernel<BM, 4>\"`\n"
                    .to_owned(),
            );
        } else if line.contains("is considered a host function") {
            add(
                "help: functions without `__device__` are host code: write \
                 `compile: { options: [\"--device-as-default-execution-space\"] }` to compile them for \
                 the device, or take them out (`tuner adopt FILE.cu` does)\n"
                    .to_owned(),
            );
        }
    }
    advice
}

/// Returns the in-memory header that defines a macro or a type of the global namespace.
fn header_of(name: &str) -> Option<&'static str> {
    let defines = |line: &str| {
        let words: Vec<&str> = line.split([' ', '(', ';']).collect();
        match words.as_slice() {
            ["#define", defined, ..] => *defined == name,
            ["typedef", .., defined, ""] => *defined == name,
            _ => false,
        }
    };
    let found = HEADERS.iter().find(|(_, text)| text.lines().any(defines));
    found.map(|(header, _)| *header)
}

/// Explains how to provide a missing header.
fn missing(file: &str) -> String {
    let folder = |file: &str| {
        ["cuda/", "cub/", "thrust/", "nv/", "crt/"]
            .iter()
            .any(|at| file.starts_with(at))
    };
    if folder(file) {
        return format!(
            "help: `{file}` is of CCCL or the compiler's own headers: type `make nvrtc`, or `pip \
             install 'nvidia-cuda-cccl==13.0.*' 'nvidia-cuda-crt==13.0.*'` beside NVRTC\n"
        );
    }
    if file.starts_with("curand") {
        return "help: `pip install --target .curand nvidia-curand` and write `compile: { include: \
                [.curand/nvidia/cu13/include] }`\n"
            .to_owned();
    }
    format!(
        "help: write the folder that holds `{file}` in the search space, `compile: {{ include: \
         [FOLDER] }}`, or take the directive out if only host code needs it\n"
    )
}

#[cfg(test)]
mod tests;
