use super::{collisions, is_declarator};

#[test]
fn a_name_behind_any_type_is_a_declaration_to_both_searches() {
    for ty in collisions::TYPES {
        assert!(is_declarator(ty), "{ty}");
    }
}
