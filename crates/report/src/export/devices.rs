//! Device names that mean the same GPU: those of CUDA, and those of the virtual GPU's tables.

/// Words of device names that do not identify the model.
pub(super) const MAKERS: [&str; 7] = ["nvidia", "geforce", "quadro", "tesla", "vgpu", "rtx", "gtx"];
/// Words after a model that denote another model.
pub(super) const VARIANTS: [&str; 6] = ["ti", "super", "ada", "laptop", "max", "d"];

/// Returns the model in a device's name, in lower case: `l4` of `NVIDIA L4` and of `vgpu:l4`,
/// `2080ti` of `NVIDIA GeForce RTX 2080 Ti`. Empty for a name that is not NVIDIA's; such names
/// match as a whole.
pub(super) fn model(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .peekable();
    let mut known = false;
    while words.next_if(|word| MAKERS.contains(word)).is_some() {
        known = true;
    }
    let Some(mut first) = words.next().filter(|_| known) else {
        return String::new();
    };
    // `rtx3090` in the tables' names.
    for maker in ["rtx", "gtx"] {
        first = first.strip_prefix(maker).unwrap_or(first);
    }
    if !first.contains(|c: char| c.is_ascii_digit()) {
        return String::new();
    }
    let mut model = first.to_owned();
    while let Some(word) = words.next_if(|word| VARIANTS.contains(word)) {
        model.push_str(word);
    }
    model
}

#[cfg(test)]
mod tests;
