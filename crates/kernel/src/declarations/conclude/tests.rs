use super::{collisions, follows_declarator, is_declarator};

#[test]
fn a_name_behind_any_type_is_a_declaration_to_both_searches() {
    for ty in collisions::TYPES {
        assert!(is_declarator(ty), "{ty}");
    }
}

#[test]
fn a_factor_is_no_declaration_and_a_pointer_is() {
    let declared = |before: &[&'static str]| {
        let word = |back: usize| before.len().checked_sub(back).map_or("", |at| before[at]);
        follows_declarator(word)
    };
    for before in [
        &["int"][..],
        &["float", "*"],
        &["const", "int", "&"],
        &["int", "*", "*"],
    ] {
        assert!(declared(before), "{before:?}");
    }
    for before in [&["x", "*"][..], &[")", "*"], &["=", "&"], &["*"], &[]] {
        assert!(!declared(before), "{before:?}");
    }
}
