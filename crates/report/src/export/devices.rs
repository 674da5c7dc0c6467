//! Which names of a device mean the same GPU: what CUDA reports, and the tables of the virtual one.

/// Words of names that say nothing of the model.
pub(super) const MAKERS: [&str; 7] = ["nvidia", "geforce", "quadro", "tesla", "vgpu", "rtx", "gtx"];
/// Words behind a model that make another one of it.
pub(super) const VARIANTS: [&str; 6] = ["ti", "super", "ada", "laptop", "max", "d"];

/// The model in a device's name, in lower case: `l4` of `NVIDIA L4` and of `vgpu:l4`, `2080ti` of
/// `NVIDIA GeForce RTX 2080 Ti`. Empty where the name is none of NVIDIA's; such names match as a
/// whole.
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
