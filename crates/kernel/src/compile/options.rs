//! Options of NVRTC, composed here instead of by a wrapper, so that every option is known, hashed and
//! shown.

/// Spellings of the option that names the language standard.
const STANDARD: [&str; 2] = ["--std", "-std"];
/// Spellings of the option that names the target.
const TARGET: [&str; 2] = ["--gpu-architecture", "-arch"];

/// Options, without dashes, that affect only their own compile. Determined by compiles before and after one
/// with the option in the same process (NVRTC 12.8).
const OF_ONE_COMPILE: [&str; 29] = [
    "gpu-architecture",
    "arch",
    "std",
    "include-path",
    "define-macro",
    "undefine-macro",
    "lineinfo",
    "generate-line-info",
    "ptxas-options",
    "Xptxas",
    "maxrregcount",
    "fmad",
    "ftz",
    "prec-div",
    "prec-sqrt",
    "use_fast_math",
    "extra-device-vectorization",
    "device-as-default-execution-space",
    "default-device",
    "device-int128",
    "relocatable-device-code",
    "rdc",
    "disable-warnings",
    "w",
    "diag-suppress",
    "diag-error",
    "display-error-number",
    "minimal",
    "split-compile",
];

/// Refuses attributes after the braces of a type in headers that only NVRTC reads: it warns that they apply to
/// nothing, and the type has another layout than in the program.
pub(super) const TRAILING_ATTRIBUTE: &str = "--diag-error=1866";

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

/// Returns the options that may change later compiles of the same process. NVRTC keeps `--device-debug`,
/// `--restrict` and `--Ofast-compile=max`, for example: the same source then compiles to different code. An
/// untested option counts as kept.
pub(super) fn lasting(options: &[String]) -> Vec<String> {
    let mut lasting = Vec::new();
    let (mut lasts, mut before) = (false, "");
    for option in options {
        // A word without a dash is the value of the preceding option, and so is an option of the assembler.
        let is_value = ["-Xptxas", "--ptxas-options"].contains(&before);
        before = if is_value { "" } else { option };
        if let Some(name) = option.strip_prefix('-').filter(|_| !is_value) {
            let name = name.strip_prefix('-').unwrap_or(name);
            let name = name.split('=').next().unwrap_or_default();
            // `-IFOLDER`, `-DNAME`, `-UNAME`
            lasts = !name.starts_with(['I', 'D', 'U']) && !OF_ONE_COMPILE.contains(&name);
        }
        if lasts {
            lasting.push(option.clone());
        }
    }
    lasting
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
