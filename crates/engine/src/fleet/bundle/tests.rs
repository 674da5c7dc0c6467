use super::*;

fn gemm() -> Kernel {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Kernel::load(&root.join("search_spaces/gemm_f32.yaml")).unwrap()
}

#[test]
fn a_kernel_that_is_packed_and_laid_out_elsewhere_has_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = PackedFiles::new();
    let kernel = gemm();
    let bundle = pack(&kernel, &mut files).unwrap();
    let path = unpack(&bundle, &files, folder.path()).unwrap();
    let other = Kernel::load(&path).unwrap();
    assert_eq!(other.template.hash, kernel.template.hash);
    assert_eq!(other.spec.kernel, kernel.spec.kernel);
    // Again over the existing files.
    unpack(&bundle, &files, folder.path()).unwrap();
}

/// A space with data, a header in a separate folder, and a kernel that fills an argument.
fn with_data(folder: &Path, include: &str) -> Kernel {
    let space = format!(
        "version: 1\nkernel: copy\nsource: copy.cu\ncompile: {{ include: ['{include}'] }}\n\
         problems: {{ small: {{ N: 64 }} }}\n\
         parameters: {{ BLOCK: {{ values: [32, 64] }} }}\n\
         arguments:\n\
         - {{ name: x, type: f32, role: input, shape: [N], fill: {{ file: data/x.bin }} }}\n\
         - {{ name: y, type: f32, role: output, shape: [N] }}\n\
         launches:\n\
         - {{ entry: copy, grid: ['ceil_div(N, BLOCK)', 1, 1], block: [BLOCK, 1, 1] }}\n\
         reference: none\n"
    );
    let kernel = "#include \"part.cuh\"\nextern \"C\" __global__ void copy(const float* x, \
                  float* y) { y[blockIdx.x * BLOCK + threadIdx.x] = part(x[0]); }\n";
    let header = "__device__ float part(float x) { return x; }\n";
    for (name, text) in [
        ("copy.yaml", space.as_str()),
        ("copy.cu", kernel),
        ("headers/part.cuh", header),
        ("data/x.bin", &"abcd".repeat(64)),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Kernel::load(&folder.join("copy.yaml")).unwrap()
}

#[test]
fn data_and_headers_travel_and_paths_of_one_machine_are_refused() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kernel = with_data(here.path(), "headers");
    let mut files = PackedFiles::new();
    let bundle = pack(&kernel, &mut files).unwrap();
    let path = unpack(&bundle, &files, there.path()).unwrap();
    // The original paths no longer exist.
    drop(here);
    let other = Kernel::load(&path).unwrap();
    assert_eq!(other.template.hash, kernel.template.hash);
    assert_eq!(other.spec.arguments[0].fill, kernel.spec.arguments[0].fill);

    let here = tempfile::tempdir().unwrap();
    let absolute = here.path().join("headers").display().to_string();
    let refused = pack(&with_data(here.path(), &absolute), &mut files).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains(&absolute) && text.contains("relative to the search space"),
        "{text}"
    );
}

#[test]
fn a_path_in_a_comment_or_at_the_beginning_of_a_word_is_no_name() {
    let here = tempfile::tempdir().unwrap();
    with_data(here.path(), "headers");
    let space = here.path().join("copy.yaml");
    let text = std::fs::read_to_string(&space).unwrap();
    let header = here.path().join("headers/part.cuh");
    let text = format!(
        "# made from {}\nsummary: as in {}.old\n{text}",
        here.path().join("copy.cu").display(),
        header.display()
    );
    std::fs::write(&space, text).unwrap();
    let packed = pack(&Kernel::load(&space).unwrap(), &mut PackedFiles::new());
    assert!(packed.is_ok(), "{packed:?}");
}

#[test]
fn a_content_that_lies_about_its_hash_and_a_way_out_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = PackedFiles::new();
    let bundle = pack(&gemm(), &mut files).unwrap();
    let mut false_files = files.clone();
    for content in false_files.values_mut() {
        content.push(b' ');
    }
    let refused = unpack(&bundle, &false_files, folder.path()).unwrap_err();
    assert!(matches!(refused, BundleError::False { .. }), "{refused}");
    for path in ["../x", "/etc/x", "a/../../x", ""] {
        let mut outside = bundle.clone();
        outside.files[0].path = path.to_owned();
        let refused = unpack(&outside, &files, folder.path()).unwrap_err();
        assert!(matches!(refused, BundleError::Outside(_)), "{refused}");
    }
}
