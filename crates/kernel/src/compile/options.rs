//! Options of NVRTC. Composed here instead of by a wrapper, so that every option is known, hashed
//! and shown.

/// Spellings of the option that names the language standard.
const STANDARD: [&str; 2] = ["--std", "-std"];
/// Spellings of the option that names the target.
const TARGET: [&str; 2] = ["--gpu-architecture", "-arch"];

/// Composes the tuner's options, then the search space's; its `--std` and `-arch` take precedence.
///
/// `-lineinfo` is always on: hazards are reported with their source line. It adds debug sections,
/// not instructions, and the cubin's hash excludes those sections.
pub(super) fn compose(arch: &str, own: &[String]) -> Vec<String> {
    let mut options = Vec::new();
    if value_of(own, TARGET).is_none() {
        options.push(target_option(arch));
    }
    if value_of(own, STANDARD).is_none() {
        options.push("--std=c++17".to_owned());
    }
    options.push("-lineinfo".to_owned());
    options.push("--ptxas-options=-v".to_owned());
    options.extend_from_slice(own);
    options
}

/// Formats the option of a target, the first of the composed ones.
pub(super) fn target_option(arch: &str) -> String {
    format!("--gpu-architecture={arch}")
}

/// Returns the target that the options compile for.
pub(super) fn target<'a>(arch: &'a str, own: &'a [String]) -> &'a str {
    value_of(own, TARGET).unwrap_or(arch)
}

/// Returns the options without machine code for the target: only the front end and PTX generation
/// remain.
pub(super) fn front_end(options: &[String], target: &str) -> Vec<String> {
    let mut kept = Vec::with_capacity(options.len() + 1);
    let mut given = options.iter();
    while let Some(option) = given.next() {
        if TARGET.contains(&option.as_str()) {
            // The value of `-arch sm_90` is the next option.
            given.next();
        } else if value_of(std::slice::from_ref(option), TARGET).is_none() {
            kept.push(option.clone());
        }
    }
    kept.push(target_option(&target.replacen("sm_", "compute_", 1)));
    kept
}

/// Returns the value of `NAME=value`, or of `NAME` followed by it.
fn value_of<'a>(options: &'a [String], names: [&str; 2]) -> Option<&'a str> {
    options.iter().enumerate().find_map(|(index, option)| {
        names
            .into_iter()
            .find_map(|name| match option.strip_prefix(name)? {
                "" => options.get(index + 1).map(String::as_str),
                rest => rest.strip_prefix('='),
            })
    })
}

#[cfg(test)]
mod tests;
