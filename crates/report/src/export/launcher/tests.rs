use super::*;
use std::path::Path;

/// A space whose size `N` the kernel receives as this type.
fn space(ty: &str) -> KernelSpec {
    let text = format!(
        "version: 1
kernel: scale
source: scale.cu
problems: {{ timed: {{ N: 1024 }} }}
sizes: argument
parameters: {{ BLOCK: {{ values: [64, 128] }} }}
arguments:
  - {{ name: y, type: f32, role: output, shape: [N] }}
  - {{ name: N, type: {ty}, role: scalar }}
launches: [{{ entry: scale, grid: [\"ceil_div(N, BLOCK)\"], block: [BLOCK] }}]
reference: none
"
    );
    KernelSpec::parse(&text, Path::new("scale.yaml")).unwrap()
}

#[test]
fn a_size_of_a_type_that_c_lacks_is_refused() {
    let checked = |ty: &str, size: bool| {
        let spec = space(ty);
        let argument = spec.arguments.last().unwrap();
        let name = argument.name.clone();
        check_size(&Parameter {
            argument,
            name,
            size,
        })
    };
    for ty in ["f16", "bf16", "f8e4m3", "f8e5m2"] {
        let why = checked(ty, true).unwrap_err().to_string();
        assert!(
            why.contains(&format!("the size `N` as the `{ty}`")),
            "{why}"
        );
        // A scalar that is not a size is passed as its bits, in a parameter of their type.
        assert_eq!(checked(ty, false), Ok(()));
    }
    for ty in ["i32", "u64", "f32", "f64", "bool"] {
        assert_eq!(checked(ty, true), Ok(()), "{ty}");
    }
}
