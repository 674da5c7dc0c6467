use super::{chosen, closure, declarations, influences};
use crate::compile::Template;
use crate::declarations::source::File;

fn files(text: &str) -> Vec<File> {
    File::from_template(&Template::new("t.cu", text, Vec::new(), Vec::new()))
}

#[test]
fn a_declaration_is_found_with_its_parameters_and_namespaces() {
    let text = "namespace a { namespace b::c {\nvoid f() { k(1, 2); return k(3); }\n\
                extern \"C\" __global__ void __launch_bounds__(4) k(const T* __restrict__ x,\n  \
                M<int, 3> y) {}\n} }\n";
    let files = files(text);
    let found = declarations(&files, "k");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].namespaces, ["a", "b", "c"]);
    let texts: Vec<&str> = found[0]
        .parameters
        .iter()
        .map(|at| &text[at.clone()])
        .collect();
    assert_eq!(texts, ["const T* __restrict__ x", "M<int, 3> y"]);
}

#[test]
fn of_two_declarations_the_compilers_line_chooses() {
    let files = files("#if X\nvoid k(int a) {}\n#else\nvoid k(float a, int b) {}\n#endif\n");
    let all = declarations(&files, "k");
    let place = ("t.cu".to_owned(), 4);
    let found = chosen(&all, &files, Some(&place)).unwrap();
    assert_eq!(found.parameters.len(), 2);
}

#[test]
fn a_list_depends_on_what_its_types_are_made_of_and_on_nothing_else() {
    let text = "#if WIDE\nusing E = float;\n#else\nusing E = half;\n#endif\n\
                constexpr int V = VECTOR * 2;\n\
                template <int n> struct Pack { E x[n]; };\ntypedef Pack<V> P;\n\
                __global__ void __launch_bounds__(THREADS) k(P* p, KIND q) { int a = DEPTH; }\n";
    let files = files(text);
    let names = influences(&files, &declarations(&files, "k"));
    for name in ["WIDE", "VECTOR", "KIND"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    for name in ["THREADS", "DEPTH"] {
        assert!(!names.contains(name), "{name} in {names:?}");
    }
    assert!(closure(&files, vec!["P".to_owned()]).contains("VECTOR"));
}
