//! The shared libraries that programs load, as data.

/// One shared library.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// File name; the library between a program and a driver is in a separate folder.
    pub name: &'static str,
    /// Contents.
    pub bytes: &'static [u8],
}

macro_rules! libraries {
    ($($name:literal),+) => {
        /// The libraries of CUDA 12 and 13, of the driver, between a program and the driver of a GPU, and
        /// [`REDIRECT`].
        pub const LIBRARIES: &[Library] = &[$(Library {
            name: $name,
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name)),
        }),+];
    };
}

libraries!(
    "libcudart.so.12",
    "libcudart.so.13",
    "libcuda.so.1",
    "forward/libcuda.so.1",
    "libtuner-redirect.so"
);

/// Folder, below that of the libraries, of the library that forwards calls to the driver of a GPU.
pub const FORWARD: &str = "forward";

/// Library for `LD_PRELOAD`: it redirects a CUDA runtime that is linked into the program.
pub const REDIRECT: &str = "libtuner-redirect.so";
