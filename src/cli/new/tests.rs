use super::*;

#[test]
fn everything_is_named_after_the_kernel() {
    let files = files(Path::new("root"), "saxpy");
    for (path, text) in &files {
        assert!(!text.contains("skeleton"), "{}: {text}", path.display());
        assert!(!text.contains("Copy this"), "{text}");
    }
    assert!(files[0].1.contains("source: ../templates/saxpy/kernel.cu"));
    assert!(files[1].1.contains("    saxpy(const float*"));
    assert!(files[2].1.contains("saxpy_reference("));
}

#[test]
fn names_are_c_names_and_a_near_one_is_offered() {
    for (name, near) in [
        ("my-kernel", "my_kernel"),
        ("3d", "k3d"),
        ("int", "int_1"),
        ("", "k"),
    ] {
        assert!(!is_identifier(name), "{name}");
        assert_eq!(repaired(name), near);
        assert!(is_identifier(near));
    }
    assert!(is_identifier("gemm_f32"));
    assert!(is_identifier(&repaired(&"ä/".repeat(300))));
}
