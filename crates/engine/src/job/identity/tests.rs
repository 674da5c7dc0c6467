use super::*;
use std::path::Path;

const SPACE: &str = "version: 1
kernel: k
source: k.cu
problems: { p: { N: 1 } }
check_problems: { small: { N: 3 } }
parameters:
  BLOCK: { values: [32, 64], default: 32 }
  OTHER: { values: [1, 2], default: 1 }
derived: { BLOCKS: COUNT + 1, COUNT: N, UNUSED: N }
arguments:
  - { name: y, type: f32, role: output, shape: [N] }
  - { name: z, type: f32, role: input, shape: [N], fill: { file: 'z.{problem}.bin' } }
launches:
  - { entry: k, grid: [BLOCKS, 1, 1], block: [BLOCK, 1, 1] }
  - { entry: k, grid: [1, 1, 1], block: [BLOCK, 1, 1] }
reference: { source: k.cu, entry: k, grid: [1, 1, 1], block: [1, 1, 1] }
metric: { flops: N }
";

struct Project(tempfile::TempDir);

impl Project {
    fn new(code: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        let code = format!(
            "extern \"C\" __global__ void k(float* y, const float* z) {{ y[0] = {code}; }}\n"
        );
        project.write("k.cu", code.as_bytes());
        project.write("z.p.bin", &[0; 4]);
        project.write("z.small.bin", &[0; 12]);
        project
    }

    fn write(&self, name: &str, contents: &[u8]) {
        std::fs::write(self.0.path().join(name), contents).unwrap();
    }

    fn identity(&self, space: &str) -> ContentHash {
        self.write("k.yaml", space.as_bytes());
        let path: &Path = &self.0.path().join("k.yaml");
        reference_hash(&Kernel::load(path).unwrap())
    }
}

#[test]
fn a_default_that_the_reference_reads_is_part_of_its_identity() {
    let other = SPACE.replace("default: 32", "default: 64");
    let reads = Project::new("BLOCK");
    assert_ne!(reads.identity(SPACE), reads.identity(&other));
    let plain = Project::new("1");
    assert_eq!(plain.identity(SPACE), plain.identity(&other));
}

#[test]
fn everything_that_decides_a_judgement_is_part_of_the_identity() {
    let project = Project::new("1");
    let before = project.identity(SPACE);
    for (old, new) in [
        ("[BLOCKS, 1, 1]", "[BLOCKS, 2, 1]"),
        (
            "block: [BLOCK, 1, 1] }",
            "block: [BLOCK, 1, 1], shared: 4 }",
        ),
        (
            "block: [BLOCK, 1, 1] }",
            "block: [BLOCK, 1, 1], when: N > 4 }",
        ),
        (
            "block: [BLOCK, 1, 1] }",
            "block: [BLOCK, 1, 1], cooperative: true }",
        ),
        (
            "  - { entry: k, grid: [1, 1, 1], block: [BLOCK, 1, 1] }\n",
            "",
        ),
        ("COUNT + 1", "COUNT + 2"),
        ("COUNT: N,", "COUNT: N + 1,"),
        ("small: { N: 3 }", "small: { N: 3 }, more: { N: 3 }"),
        ("flops: N", "flops: 2 * N"),
        ("{ flops: N }", "{ flops: N, bytes: N }"),
        ("metric: {", "gate: { rtol: 0.5 }\nmetric: {"),
    ] {
        assert!(SPACE.contains(old), "{old}");
        project.write("z.more.bin", &[0; 12]);
        assert_ne!(
            project.identity(&SPACE.replacen(old, new, 1)),
            before,
            "{new}"
        );
    }
    project.write("z.small.bin", &[1; 12]);
    assert_ne!(project.identity(SPACE), before, "data");
}

#[test]
fn the_place_of_a_project_is_no_part_of_the_identity() {
    let [here, there] = [Project::new("1"), Project::new("1")].map(|one| one.identity(SPACE));
    assert_eq!(here, there);
}

#[test]
fn what_only_chooses_configurations_is_no_part_of_the_identity() {
    let project = Project::new("1");
    let before = project.identity(SPACE);
    for (old, new) in [
        ("UNUSED: N", "UNUSED: N + 1"),
        ("default: 32", "default: 64"),
        ("[1, 2], default: 1", "[1, 2, 3], default: 2"),
        (
            "metric: {",
            "constraints: [{ rule: BLOCK > OTHER }]\nmetric: {",
        ),
        ("p: { N: 1 }", "p: { N: 1, weight: 2 }"),
    ] {
        assert!(SPACE.contains(old), "{old}");
        assert_eq!(
            project.identity(&SPACE.replacen(old, new, 1)),
            before,
            "{new}"
        );
    }
}

#[test]
fn a_fill_like_the_default_one_limits_whole_numbers() {
    let project = Project::new("1");
    let fill = ", fill: { file: 'z.{problem}.bin' }";
    let with = |ty: &str, fill_now: &str| {
        let space = SPACE.replacen("z, type: f32", &format!("z, type: {ty}"), 1);
        project.identity(&space.replacen(fill, fill_now, 1))
    };
    let default = ", fill: { uniform: { min: 0, max: 100 } }";
    assert_ne!(with("i32", ""), with("i32", default));
    let normal = ", fill: { normal: { mean: 0, std: 1 } }";
    assert_eq!(with("f32", ""), with("f32", normal));
}

#[test]
fn a_name_stands_for_values_that_were_accepted_elsewhere() {
    let project = Project::new("1");
    let kernel = "reference: { source: k.cu, entry: k, grid: [1, 1, 1], block: [1, 1, 1] }";
    let identity = |contents: u8, accepted: &str| {
        project.write("y.p.bin", &[contents; 4]);
        project.write("y.small.bin", &[contents; 12]);
        let values = format!("reference: {{ values: {{ y: 'y.{{problem}}.bin' }}{accepted} }}");
        project.identity(&SPACE.replacen(kernel, &values, 1))
    };
    assert_ne!(identity(0, ""), identity(1, ""));
    let named = identity(0, ", accepted_as: test");
    assert_eq!(named, identity(1, ", accepted_as: test"));
    assert_ne!(named, identity(0, ", accepted_as: other"));
    assert_ne!(named, identity(0, ""));
}
