//! GPUs by the names that they give themselves: those of CUDA, of recorded files and of the virtual
//! GPU's tables.

use super::{Arch, list_gpus};

/// Words of device names that do not identify the model.
const MAKERS: [&str; 7] = ["nvidia", "geforce", "quadro", "tesla", "vgpu", "rtx", "gtx"];
/// Words after a model that denote another model.
const VARIANTS: [&str; 6] = ["ti", "super", "ada", "laptop", "max", "d"];

/// Returns the model in a device's name, in lower case: `l4` of `NVIDIA L4` and of `vgpu:l4`,
/// `2080ti` of `NVIDIA GeForce RTX 2080 Ti`. Empty for a name that is not NVIDIA's; such names
/// match as a whole.
#[must_use]
pub fn model(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = split(&lower);
    let makers = words.iter().take_while(|word| MAKERS.contains(word));
    match makers.count() {
        0 => String::new(),
        makers => model_in(words.get(makers..).unwrap_or_default()),
    }
}

fn split(lower: &str) -> Vec<&str> {
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the model that begins with the first word.
fn model_in(words: &[&str]) -> String {
    let Some((first, rest)) = words.split_first() else {
        return String::new();
    };
    let mut first = *first;
    // `rtx3090` in the tables' names.
    for maker in ["rtx", "gtx"] {
        first = first.strip_prefix(maker).unwrap_or(first);
    }
    if !first.contains(|c: char| c.is_ascii_digit()) {
        return String::new();
    }
    let variants = rest.iter().take_while(|word| VARIANTS.contains(word));
    std::iter::once(&first).chain(variants).copied().collect()
}

/// Returns the table of a device by its reported name: `vgpu:h100@1500MHz`, `NVIDIA H100 80GB HBM3`,
/// `A100-PCIE-40GB`. `None` for a model without a table.
#[must_use]
pub fn by_device_name(device: &str) -> Option<&'static Arch> {
    if let Some(name) = device.strip_prefix("vgpu:") {
        return Arch::by_name(name);
    }
    let lower = device.to_ascii_lowercase();
    let words = split(&lower);
    // A recorded file names its device with or without the maker.
    (0..words.len()).find_map(|start| {
        // A table without a number in its name has no model.
        let found = Some(model_in(words.get(start..)?)).filter(|model| !model.is_empty())?;
        list_gpus()
            .iter()
            .find(|arch| model_in(&[arch.name]) == found)
    })
}

#[cfg(test)]
mod tests;
