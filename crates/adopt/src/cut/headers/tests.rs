use super::declared;
use crate::unit::Unit;
use std::collections::BTreeSet;

/// Returns the template of the kernel `k` of a file with such a text.
fn template(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.cu");
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    let is_kernel = |item: &crate::unit::Item| item.names.iter().any(|name| name == "k");
    let kernel = unit.items.iter().position(is_kernel).unwrap();
    let none = BTreeSet::new();
    let kept = crate::cut::reach(&unit, kernel, &none);
    crate::cut::write(&unit, &kept, &none, &[], &|_| true).text
}

#[test]
fn a_header_stays_where_the_kernel_uses_any_name_that_it_declares() {
    for (header, used) in [
        ("bit", "std::bit_width(n)"),
        ("bit", "std::has_single_bit(n)"),
        ("numeric", "std::midpoint(1, n)"),
        ("iterator", "*std::next(y, n)"),
        ("optional", "*std::make_optional(n)"),
        ("variant", "std::get<0>(n)"),
        ("concepts", "std::integral<int>"),
        ("numbers", "std::numbers::pi"),
        ("tuple", "std::tuple_size_v<int>"),
        ("limits", "std::float_round_style(n)"),
    ] {
        let directive = format!("#include <{header}>\n");
        let of = |value: &str| {
            template(&format!(
                "{directive}__global__ void k(int* y, int n) {{ *y = {value}; }}\n"
            ))
        };
        assert!(of(used).contains(&directive), "{header}: {used}");
        assert!(!of("n").contains(&directive), "{header}");
        // A variable of the kernel may have such a name.
        let plain = used.replace("std::", "");
        assert!(!of(&plain).contains(&directive), "{header}: {plain}");
    }
    let all = "#include <iterator>\nusing namespace std;\n\
               __global__ void k(int* y, int n) { *y = *next(y, n); }\n";
    assert!(template(all).contains("#include <iterator>\n"));
}

#[test]
fn an_alias_of_a_header_and_one_for_the_host_declare_nothing() {
    assert!(declared("cstdio").is_empty() && declared("vector").is_empty());
    assert!(!declared("bit").contains("std"));
}
