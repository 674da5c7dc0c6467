//! Template types that the compiler deduces from the arguments of a launch.

use super::KernelContext;
use crate::kernel::{self, QUALIFIERS, plain};
use crate::tree::{self, Node, Source, words};
use crate::types::bytes_of;
use crate::unit::Unit;
use tuner_kernel::declarations;

/// Returns the type of a type parameter from the arguments of the launch: those passed by name, declared in
/// the launching function.
pub(super) fn deduced(known: &KernelContext<'_>, parameter: &str) -> Option<String> {
    let launch = known.launch.as_ref()?;
    let (source, function) = (launch.scope.source, launch.scope.function?);
    let mut all = known.parameters.iter().enumerate();
    all.find_map(|(at, own)| {
        let (ty, pointers) = plain(&own.ty);
        let given = known.given(at).filter(|_| ty == parameter)?;
        if let Some(ty) = constructed(known.unit, source, given) {
            return Some(ty);
        }
        let name = tree::bare(given).filter(|node| node.kind() == "identifier")?;
        let (ty, depth) = declared(source, function, source.node_text(name))?;
        let named = !matches!(ty.as_str(), "" | "auto" | "void");
        (depth == pointers && named && is_complete(known.unit, &ty)).then_some(ty)
    })
}

/// Returns the type of an object that a launch makes: `Op{3.0f}`, `Op(3.0f)`.
fn constructed(unit: &Unit, source: &Source, given: Node<'_>) -> Option<String> {
    let ty = match given.kind() {
        "compound_literal_expression" => given.child_by_field_name("type")?,
        "call_expression" => given.child_by_field_name("function")?,
        _ => return None,
    };
    let ty = source.node_text(ty);
    let is_type = |(_, _, node): (_, _, Node<'_>)| {
        matches!(
            tree::inner(node).kind(),
            "struct_specifier" | "class_specifier"
        )
    };
    let name = words(ty.split('<').next()?).pop()?;
    unit.declaring(name).any(is_type).then(|| ty.to_owned())
}

/// Reports whether the kernel indexes by the elements of a parameter of this type: `x[at[i]]`.
pub(super) fn indexes(known: &KernelContext<'_>, parameter: &str) -> bool {
    let code = known.source.code(&known.node.byte_range());
    let code: String = code.split_whitespace().collect();
    let mut own = known
        .parameters
        .iter()
        .filter(|own| plain(&own.ty) == (parameter.to_owned(), 1));
    own.any(|own| code.contains(&format!("[{}[", own.name)))
}

/// Returns the type that an explicit instance gives a template parameter of the launching function or its
/// class: `template class Field<double>;`. The last one counts, as the default is after the options.
pub(super) fn instantiated(known: &KernelContext<'_>, parameter: &str) -> Option<String> {
    let scope = known.launch.as_ref()?.scope;
    let function = scope.function?;
    let parameters = kernel::template_parameters(scope.source, function.parent()?);
    let at = parameters.iter().position(|each| each.name == parameter)?;
    // Of `Field<TF>::exec` the class has the parameters.
    let names = tree::declared(scope.source, function);
    let name = names.first()?;
    let files = known.unit.files.iter();
    let found = files.flat_map(|file| {
        let code = file.code(&(0..file.len()));
        let uses = code.match_indices(name.as_str());
        uses.filter_map(|(start, name)| {
            let head = code.get(..start)?.rsplit([';', '{', '}']).next()?;
            let head = head
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'));
            let head = head.collect::<Vec<_>>().join(" ");
            let is_instance = head
                .trim_start()
                .strip_prefix("template")
                .is_some_and(|rest| {
                    rest.starts_with(char::is_whitespace) && !rest.trim_start().starts_with('<')
                });
            let rest = code
                .get(start + name.len()..)?
                .trim_start()
                .strip_prefix('<')?;
            let list = rest.split([';', '{']).next()?;
            let end = match list.find(">(") {
                Some(end) => end,
                None => list.rfind('>')?,
            };
            let given = declarations::split(list.get(..end)?);
            given.get(at).cloned().filter(|_| is_instance)
        })
        .collect::<Vec<_>>()
    });
    found.last()
}

/// Reports whether a type is not an alias of a type in an unreachable header, such as `typedef at::BFloat16
/// bf16;`.
fn is_complete(unit: &Unit, ty: &str) -> bool {
    let is_known = |word: &str| {
        matches!(word, "unsigned" | "signed" | "typedef" | "using" | "struct")
            || bytes_of(word).is_some()
            || QUALIFIERS.contains(&word)
            || unit.declaring(word).next().is_some()
    };
    words(ty).into_iter().all(|word| {
        let mut aliases = unit.declaring(word).filter(|(_, source, node)| {
            let text = source.node_text(*node).trim_start();
            text.starts_with("typedef") || text.starts_with("using")
        });
        aliases.all(|(item, ..)| item.words.iter().all(|word| is_known(word)))
    })
}

/// Returns the type of a parameter or variable of a function.
pub(super) fn declared(source: &Source, function: Node<'_>, name: &str) -> Option<(String, usize)> {
    let mut found = None;
    tree::visit(function, &mut |node| {
        let declares = matches!(node.kind(), "parameter_declaration" | "declaration");
        let ty = node.child_by_field_name("type").filter(|_| declares);
        if let Some(ty) = ty {
            let mut cursor = node.walk();
            for declarator in node.children_by_field_name("declarator", &mut cursor) {
                if tree::declared_name(source, declarator) == [name] {
                    let text = source.node_text(declarator);
                    let text = text.split('=').next().unwrap_or(text);
                    let pointers = text.matches(['*', '[']).count();
                    found.get_or_insert((plain(source.node_text(ty)).0, pointers));
                }
            }
        }
        true
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn variables_of_a_function_have_their_declared_types() {
        let text = "void run(int n, const half *x, unsigned int *m) {\n\
                    double *y = nullptr, z; std::complex *c; float a[4];\n}\n";
        let source = Source::parse(Path::new("a.cu"), "a.cu".to_owned(), text.to_owned()).unwrap();
        let function = tree::first(source.tree().root_node()).unwrap();
        let of = |name| declared(&source, function, name);
        let is = |ty: &str, pointers| Some((ty.to_owned(), pointers));
        assert_eq!(of("n"), is("int", 0));
        assert_eq!(of("x"), is("half", 1));
        assert_eq!(of("m"), is("unsigned int", 1));
        assert_eq!(of("y"), is("double", 1));
        assert_eq!(of("z"), is("double", 0));
        assert_eq!(of("c"), is("std::complex", 1));
        assert_eq!(of("a"), is("float", 1));
        assert_eq!(of("other"), None);
    }

    #[test]
    fn names_of_types_out_of_reach_are_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.cu");
        let text = "typedef at::BFloat16 bf16;\ntypedef unsigned int number;\nusing real = float;\n\
                    struct own { int a; };\n__global__ void k(float* y) { *y = 1; }\n";
        std::fs::write(&file, text).unwrap();
        let unit = Unit::read(&file, &[]).unwrap();
        for (ty, complete) in [
            ("bf16", false),
            ("number", true),
            ("real", true),
            ("own", true),
            ("half", true),
        ] {
            assert_eq!(is_complete(&unit, ty), complete, "{ty}");
        }
    }

    #[test]
    fn qualifiers_are_no_part_of_a_type() {
        assert_eq!(plain("const F *__restrict__ const"), ("F".to_owned(), 1));
        assert_eq!(plain("F"), ("F".to_owned(), 0));
    }
}
