//! Headers that a changed source may include: an allow-list by name.

/// CUDA's own device headers.
pub const CUDA_HEADERS: [&str; 14] = [
    "cooperative_groups.h",
    "cooperative_groups/memcpy_async.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cuda/barrier",
    "cuda/pipeline",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cuda_fp8.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "mma.h",
    "stdint.h",
    "vector_types.h",
];

/// Reason why a source is refused before it is compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncludeError {
    /// A header outside the allow-list.
    #[error("line {line}: the header `{name}` is not in the list of allowed headers: {allowed}")]
    Outside {
        /// Line of the source, from 1.
        line: usize,
        /// Name in the directive.
        name: String,
        /// The allowed names.
        allowed: String,
    },
    /// A directive that reads a file by other means.
    #[error(
        "line {line}: `{directive}` may read any file and is refused; include a header by its name"
    )]
    Directive {
        /// Line of the source, from 1.
        line: usize,
        /// The directive.
        directive: String,
    },
}

/// Checks every directive and operator of a source that reads a file. `parent` has the names that the
/// parent includes.
///
/// # Errors
/// The first that is not allowed.
pub fn check(source: &str, parent: &[String]) -> Result<(), IncludeError> {
    for (line, text) in logical_lines(source) {
        let refused = |directive: &str| IncludeError::Directive {
            line,
            directive: directive.to_owned(),
        };
        if let Some(word) = FILE_WORDS.iter().find(|word| text.contains(**word)) {
            return Err(refused(word));
        }
        let Some(directive) = text.trim_start().strip_prefix('#') else {
            continue;
        };
        let directive = directive.trim_start();
        if ["include_next", "embed", "import"]
            .iter()
            .any(|name| directive.starts_with(name))
        {
            return Err(refused(directive));
        }
        let Some(rest) = directive.strip_prefix("include") else {
            continue;
        };
        let Some(name) = named(rest.trim()) else {
            return Err(refused(&format!("#{directive}")));
        };
        let allowed = parent.iter().map(String::as_str).chain(CUDA_HEADERS);
        if !allowed.clone().any(|one| one == name) {
            let allowed: Vec<&str> = allowed.collect();
            return Err(IncludeError::Outside {
                line,
                name: name.chars().take(120).collect(),
                allowed: allowed.join(", "),
            });
        }
    }
    Ok(())
}

/// Returns all allowed names for a parent that includes these.
#[must_use]
pub fn allowed(parent: &[String]) -> Vec<String> {
    let mut names = parent.to_vec();
    names.extend(CUDA_HEADERS.map(str::to_owned));
    names.dedup();
    names
}

/// Words outside of `#` directives that make a compiler read a file.
const FILE_WORDS: [&str; 4] = [
    "__has_include",
    "__has_embed",
    ".incbin",
    "_Pragma(\"include",
];

/// Returns the lines with their numbers, with spliced lines joined, digraphs replaced and block comments
/// that precede a directive removed: the compiler sees directives after these steps.
fn logical_lines(source: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (index, line) in source.lines().enumerate() {
        let (number, mut text) = begun.take().unwrap_or((index + 1, String::new()));
        let line = line.trim_end_matches(['\r', ' ', '\t']);
        match line.strip_suffix('\\') {
            Some(part) => {
                text.push_str(part);
                begun = Some((number, text));
            }
            None => {
                text.push_str(line);
                lines.push((number, cleaned(&text)));
            }
        }
    }
    lines.extend(begun.map(|(number, text)| (number, cleaned(&text))));
    lines
}

fn cleaned(line: &str) -> String {
    let mut text = line.replace("%:", "#").replace("??=", "#");
    while let Some(open) = text.find("/*") {
        let close = text.get(open + 2..).and_then(|rest| rest.find("*/"));
        match close {
            Some(close) => text.replace_range(open..open + 2 + close + 2, " "),
            None => break,
        }
    }
    // The end of a comment that began on an earlier line may be followed by a directive.
    match text.rsplit_once("*/") {
        Some((_, rest)) if rest.trim_start().starts_with('#') => rest.to_owned(),
        _ => text,
    }
}

/// Returns the name in `"name"` or `<name>`.
fn named(text: &str) -> Option<&str> {
    let (open, rest) = text.split_at_checked(1)?;
    let close = match open {
        "\"" => '"',
        "<" => '>',
        _ => return None,
    };
    Some(rest.split_once(close)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_cuda_and_of_the_parent_are_allowed() {
        let source = "#include <cuda_fp16.h>\n# include \"shared.cuh\"\nint x; // #include <x.h>\n";
        assert_eq!(check(source, &["shared.cuh".to_owned()]), Ok(()));
        assert!(check(source, &[]).is_err());
    }

    #[test]
    fn every_spelling_of_another_header_is_refused_by_name() {
        for source in [
            "#include \"/etc/passwd\"",
            "#include <cublas_v2.h>",
            "#include <cutlass/gemm/device/gemm.h>",
            "  #  include <cub/cub.cuh>",
            "%:include <cub/cub.cuh>",
            "#inc\\\nlude <cub/cub.cuh>",
            "#include \\\n  <cub/cub.cuh>",
            "/* a */ #include <cub/cub.cuh>",
            "/* a\n b */ #include <cub/cub.cuh>",
            "#/* a */include <cub/cub.cuh>",
            "#include /* a */ <cub/cub.cuh>",
        ] {
            let error = check(source, &[]).unwrap_err();
            assert!(
                matches!(error, IncludeError::Outside { .. }),
                "{source}: {error}"
            );
        }
    }

    #[test]
    fn other_ways_to_read_a_file_are_refused() {
        for source in [
            "#define H <cub/cub.cuh>\n#include H",
            "#include_next <x.h>",
            "#embed \"/etc/passwd\"",
            "#if __has_include(\"/etc/passwd\")\n#endif",
            "asm(\".incbin \\\"/etc/passwd\\\"\");",
        ] {
            let error = check(source, &[]).unwrap_err();
            assert!(
                matches!(error, IncludeError::Directive { .. }),
                "{source}: {error}"
            );
        }
    }
}
