use super::*;
use std::path::Path;
use tuner_space::{DeviceLimits, KernelSpec};

const SPACE: &str = "\
version: 1
kernel: k
source: k.cu
problems: { p: { N: 8 } }
parameters:
  BM: { values: [16, 64, 128], default: 64 }
  STAGES_K: { values: [1, 2, 3], default: 2 }
  BARRIERS: { values: [1, 2], default: 1 }
  PAD: { values: [0, 8], default: 8 }
  MIN_BLOCKS: { values: [0, 1, 2, 4], default: 0 }
  WARPS: { values: [4, 2], default: 4 }
constraints:
  - { rule: \"WARPS * max(MIN_BLOCKS, 1) <= 8\", why: registers }
  - { rule: \"BARRIERS == 2 or STAGES_K > 1\", why: one barrier needs two stages }
arguments:
  - { name: y, type: f32, role: output, shape: [N] }
launches: [{ entry: k, grid: [1, 1, 1], block: [32, 1, 1] }]
reference: { source: k.cu, entry: k, grid: [1, 1, 1], block: [32, 1, 1] }
";

#[test]
fn a_pathology_changes_its_parameters_and_repairs_only_what_it_must() {
    let spec = KernelSpec::parse(SPACE, Path::new("k.yaml")).expect("the space is right");
    let limits = DeviceLimits {
        sm_count: 132,
        shared_bytes: 232_448,
        cc: 90,
        max_threads: 1024,
    };
    let space = spec.space("p", &limits).expect("the space is built");
    let base = space.default_config();
    // Two blocks spill, one does not; for four the block would have to shrink.
    let mut asked = Vec::new();
    let mut spills = |config: &Config| -> Result<Option<u64>, ()> {
        asked.push(config.choices()[4]);
        Ok(Some(u64::from(config.choices()[4] == 2) * 64))
    };
    let found = inversions(&space, &base, &mut spills).expect("nothing fails");
    assert_eq!(asked, [2]);
    assert_eq!(found.left_out, ["unvectorised loads"; 0]);
    let mut never = |_: &Config| -> Result<Option<u64>, ()> { Ok(Some(0)) };
    let without = inversions(&space, &base, &mut never).expect("nothing fails");
    assert_eq!(without.left_out, ["forced spills"]);
    let texts: Vec<String> = found
        .found
        .iter()
        .map(|inverted| {
            let values: Vec<String> = space
                .values(&inverted.config)
                .iter()
                .map(|(_, value)| value.to_string())
                .collect();
            format!("{}: {}", inverted.name, values.join(" "))
        })
        .collect();
    assert_eq!(
        texts,
        [
            "no padding or swizzle: 64 2 1 0 0 4",
            "one stage: 64 1 2 8 0 4",
            "tiny blocks: 16 2 1 8 0 4",
            "huge blocks: 128 2 1 8 0 4",
            "forced spills: 64 2 1 8 2 4"
        ]
    );
}
