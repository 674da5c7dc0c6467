//! How a program is linked with the CUDA runtime.

/// Linkage of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linkage {
    /// A runtime library that this crate has, or none.
    Shared,
    /// The runtime is part of the program.
    StaticRuntime,
    /// A runtime library that this crate does not have, by name.
    OldRuntime(String),
    /// A script, or a program without CUDA.
    Other,
}

const SECTION: &[u8] = b".nv_fatbin\0";
const LIBRARY: &[u8] = b"libcudart.so.";

/// Reads the linkage from the bytes of a program: a fat binary without a shared runtime library means
/// that the runtime is in the program.
#[must_use]
pub fn read_linkage(bytes: &[u8]) -> Linkage {
    if !bytes.starts_with(b"\x7fELF") {
        return Linkage::Other;
    }
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let libraries = bytes.windows(LIBRARY.len()).enumerate();
    let mut names = libraries
        .filter(|(_, window)| *window == LIBRARY)
        .map(|(start, _)| {
            let rest = bytes.get(start..).unwrap_or_default();
            let end = rest
                .iter()
                .take(64)
                .position(|byte| *byte == 0)
                .unwrap_or(0);
            String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
        });
    let known = ["libcudart.so.12", "libcudart.so.13"];
    // The static runtime names the file that it would load; only a whole name is an entry of DT_NEEDED.
    match names.find(|name| name.len() > LIBRARY.len()) {
        Some(name) if known.contains(&name.as_str()) => Linkage::Shared,
        Some(name) => Linkage::OldRuntime(name),
        None if holds(SECTION) => Linkage::StaticRuntime,
        None => Linkage::Other,
    }
}
