//! Headers of CUDA: lines of them are not blamed where the program has one of its own.

/// Directories of the toolkit and of the CUDA C++ core libraries.
const DIRECTORIES: &[&str] = &[
    "/cuda/std/",
    "/cuda/__",
    "/include/cuda/",
    "/cccl/",
    "/libcudacxx/",
    "/cub/",
    "/thrust/",
    "/cooperative_groups/",
    "/crt/",
    "/nvidia/",
    "/nv/",
];

/// Beginnings of names of headers of the toolkit.
const STEMS: &[&str] = &[
    "cuda_",
    "sm_",
    "device_",
    "mma.h",
    "math_",
    "texture_",
    "surface_",
    "vector_",
    "cooperative_groups",
    "channel_",
    "common_functions",
    "host_",
    "curand_",
];

/// Reports whether a file is one of the headers that come with CUDA.
pub(super) fn is_toolkit(file: &str) -> bool {
    let path = file.replace('\\', "/");
    let name = path.rsplit('/').next().unwrap_or(&path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    // Headers of the C++ libraries, such as `<cuda/atomic>`, have no extension.
    let in_library = matches!(extension, None | Some("h" | "hpp" | "cuh" | "inl"))
        && DIRECTORIES.iter().any(|d| path.contains(d));
    // A program may have a `device_sort.cuh`: only the suffixes of the toolkit count.
    let in_toolkit = matches!(extension, None | Some("h" | "hpp"))
        && STEMS.iter().any(|stem| name.starts_with(stem));
    in_library || in_toolkit
}
