use super::*;

#[test]
fn embedded_code_is_listed_by_kind_and_target() {
    let embed = embedded("cubin:sm_89,sm_90a,ptx").unwrap();
    let targets = vec!["sm_89".to_owned(), "sm_90a".to_owned()];
    assert_eq!((embed.cubin, embed.ptx), (targets, true));
    for wrong in ["sm_89", "cubin:", "cubin:sm_x", "cubin:89", "", "fatbin"] {
        assert!(embedded(wrong).is_err(), "{wrong}");
    }
}
