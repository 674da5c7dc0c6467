//! The shared libraries that programs load, as data.

/// One shared library.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// File name.
    pub name: &'static str,
    /// Contents.
    pub bytes: &'static [u8],
}

macro_rules! libraries {
    ($($name:literal),+) => {
        /// The libraries of CUDA 12 and 13, and of the driver.
        pub const LIBRARIES: &[Library] = &[$(Library {
            name: $name,
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name)),
        }),+];
    };
}

libraries!("libcudart.so.12", "libcudart.so.13", "libcuda.so.1");
