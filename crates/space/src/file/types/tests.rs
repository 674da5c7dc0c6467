use crate::KernelSpec;
use std::path::Path;

const SPACE: &str = "\
version: 1
kernel: k
source: k.cu
problems: { small: { N: 8 } }
arguments:
  - { name: in, type: { x: f32, n: { type: i32, fill: FILL } }, role: input, shape: [N] }
  - { name: out, type: f32, role: output, shape: [N] }
launches: [{ entry: k, grid: [1], block: [N] }]
reference: { oracle: copy }
";

#[test]
fn a_fill_that_no_field_can_have_is_shown_and_its_argument_is_not_dropped() {
    let parse = |fill: &str| KernelSpec::parse(&SPACE.replace("FILL", fill), Path::new("k.yaml"));
    assert_eq!(parse("arange").unwrap().arguments.len(), 2);
    for fill in [
        "{ file: x.npy }",
        "{ kernel: make }",
        "{ csr: { offsets: N } }",
    ] {
        let error = parse(fill).unwrap_err().to_string();
        let place = "k.yaml:6:55: error: the field `n` cannot be filled so\n";
        assert!(error.starts_with(place), "{error}");
        assert!(error.contains("\n  help: fill fields by a rule"), "{error}");
    }
}
