use super::*;

#[test]
fn targets_are_kernel_tuners() {
    assert_eq!(target("NVIDIA A100-SXM4-40GB"), "NVIDIA_A100_SXM4_40GB");
    assert_eq!(target(" vgpu:h100 "), "vgpu_h100");
}

#[test]
fn members_never_meet_a_macro_or_a_keyword() {
    assert_eq!(
        members(&["TILE", "tile", "INT", "block_size_x", "N"], &["n"]),
        ["tile_", "tile__", "int_", "block_size_x_", "n_"]
    );
}

#[test]
fn keywords_of_c_cpp_and_python_are_renamed_as_members_and_refused_as_macros() {
    for word in [C23, CPP20].iter().flat_map(|list| list.split_whitespace()) {
        assert!(check_macro(word).is_err(), "{word}");
        assert_ne!(members(&[&word.to_ascii_uppercase()], &[]), [word]);
    }
    for word in ["xor", "typeof", "lambda", "is", "linux"] {
        assert_ne!(members(&[&word.to_ascii_uppercase()], &[]), [word]);
    }
    for word in ["__LINE__", "__VA_ARGS__", "defined", "a b", "", "1a", "a\n"] {
        assert!(check_macro(word).is_err(), "{word}");
    }
    assert!(check_macro("XOR").is_ok());
}

#[test]
fn a_long_name_is_a_short_file_name_of_its_own() {
    let (one, two) = ("a".repeat(10_000), format!("{}b", "a".repeat(9_999)));
    assert!(target_name(&one).len() <= FILE_NAME_BYTES);
    assert_ne!(target_name(&one), target_name(&two));
    assert_eq!(identifier("\u{65e5}"), "kernel");
}
