//! C++ types in the search space's terms: numbers, vectors, and structs by their fields.

mod field;

use super::host::Host;
use super::tree::{self, Node, Source};
use super::unit::{Kind, Unit};
use cuda_source::{Base, CppType};
use tuner_core::element::{Element, vector_type};
use tuner_core::plan::Role;

/// Placeholder for the argument's name in a value.
pub(crate) const OWN: &str = "$";
/// Maximum number of aliases from a name to its type.
const MAX_ALIASES: usize = 8;
/// Maximum number of array elements of a struct that are listed.
const MAX_WRITTEN: i64 = 64;

/// A type in a search space.
#[derive(Debug, Default)]
pub(crate) struct TypeDescription {
    /// Type in YAML.
    pub(crate) yaml: String,
    /// Bytes of one value, if known.
    pub(crate) bytes: i64,
    /// Alignment of a struct, bytes.
    align: i64,
    /// Number of lanes of a number or vector.
    lanes: u32,
    /// Guessed value if a plain number is invalid.
    pub(crate) value: Option<String>,
    /// Pointer fields with the type and bytes of their elements.
    pub(crate) pointers: Vec<(String, String, i64)>,
    /// Integer fields, each of which may be a size.
    pub(crate) whole: Vec<String>,
}

/// Reason why a type cannot be described, with a fix; `PLACE` is replaced by the kernel's position.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) why: String,
    pub(crate) help: String,
}

/// Integer types of sizes.
const WHOLE: [&str; 4] = ["i32", "u32", "i64", "u64"];

/// Keywords that are not part of a type's name.
const QUALIFIERS: [&str; 10] = [
    "const",
    "volatile",
    "__restrict__",
    "restrict",
    "__restrict",
    "struct",
    "class",
    "enum",
    "__grid_constant__",
    "static",
];

/// Strips qualifiers, pointers and extents from a type.
fn plain(ty: &str) -> String {
    let words = ty.split(|c: char| c.is_whitespace() || matches!(c, '*' | '[' | ']' | '(' | ')'));
    let kept = words.filter(|word| {
        !word.is_empty() && !QUALIFIERS.contains(word) && !word.chars().all(|c| c.is_ascii_digit())
    });
    kept.collect::<Vec<_>>().join(" ")
}

/// A number or a vector.
#[derive(Debug)]
pub(crate) struct Number {
    /// Type in YAML.
    pub(crate) yaml: String,
    element: Element,
    lanes: u32,
}

impl Number {
    fn bytes(&self) -> i64 {
        i64::from(self.lanes) * self.element.size() as i64
    }
}

/// Parses a number or vector type of the compiler or the source.
pub(crate) fn number(ty: &str) -> Option<Number> {
    if ty.matches('*').count() > 1 || ty.contains('&') {
        return None;
    }
    let plain = plain(ty);
    let name = match plain.strip_prefix("std::").unwrap_or(&plain) {
        "dim3" => "uint3",
        "nv_bfloat162" => "__nv_bfloat162",
        name => name,
    };
    let CppType { base, lanes } = CppType::by_name(name);
    // A `void*` is a buffer of bytes.
    let element = base
        .element()
        .or((base == Base::Void).then_some(Element::U8))?;
    let yaml = match (lanes, name) {
        (1, _) => element.name(),
        (_, "__half2") => "half2",
        (_, "__nv_bfloat162") => "bfloat162",
        (_, vector) => vector,
    };
    // Packed floats and aligned vectors have no name in a search space.
    if lanes > 1 {
        vector_type(yaml)?;
    }
    Some(Number {
        yaml: yaml.to_owned(),
        element,
        lanes,
    })
}

/// Returns the bytes of a number or vector; `None` for other types.
pub(crate) fn bytes_of(ty: &str) -> Option<i64> {
    // `number` resolves a pointer or an array to the element, whose size is different.
    let made = ty.contains(['*', '[', '(']);
    Some(number(ty).filter(|_| !made)?.bytes())
}

/// Reports whether a type is a texture or surface.
pub(crate) fn is_opaque(ty: &str) -> bool {
    let words = ["Texture", "texture", "Surface", "surface"];
    words.iter().any(|word| ty.contains(word))
}

/// Describes the type of an argument or a variable.
pub(crate) fn describe(
    unit: &Unit,
    ty: &str,
    role: Role,
    is_enum: bool,
) -> Result<TypeDescription, Refusal> {
    if is_opaque(ty) {
        return Err(Refusal {
            why: format!("is a texture or surface ({ty})"),
            help: "textures cannot be run here; pass a pointer to the elements instead".to_owned(),
        });
    }
    if ty.matches('*').count() > 1 {
        return Err(Refusal {
            why: format!("is a pointer to pointers ({ty})"),
            help: "pass one pointer to all elements and an offset, or point from a `__device__` \
                   variable or a field of a struct: docs/arguments.md"
                .to_owned(),
        });
    }
    if is_enum {
        return Ok(TypeDescription {
            yaml: "i32".to_owned(),
            bytes: 4,
            lanes: 1,
            ..TypeDescription::default()
        });
    }
    let name = match describe_number(unit, ty, role) {
        Ok(described) => return Ok(described),
        Err(name) => name,
    };
    record(unit, &name, role).map_err(|why| Refusal {
        why: format!("has the type `{name}`: {why}"),
        help: format!(
            "only you know what its bytes mean: write a `__global__` function in PLACE's file that \
             takes the fields of `{name}` and calls this one, and adopt that"
        ),
    })
}

/// Describes a type of numbers; for any other type returns the aliased name.
fn describe_number(unit: &Unit, ty: &str, role: Role) -> Result<TypeDescription, String> {
    let mut ty = ty.to_owned();
    for _ in 0..MAX_ALIASES {
        if let Some(number) = number(&ty) {
            let ones = vec!["1"; number.lanes as usize].join(", ");
            return Ok(TypeDescription {
                bytes: number.bytes(),
                lanes: number.lanes,
                value: (number.lanes > 1 && role == Role::Scalar).then(|| format!("[{ones}]")),
                yaml: number.yaml,
                ..TypeDescription::default()
            });
        }
        match aliased(unit, &plain(&ty)) {
            Some(next) => ty = next,
            None => break,
        }
    }
    Err(plain(&ty))
}

/// Returns the bytes of a type if the unit defines it.
pub(crate) fn bytes(unit: &Unit, ty: &str) -> Option<i64> {
    bytes_of(ty).or_else(|| Some(describe(unit, ty, Role::Input, false).ok()?.bytes))
}

/// Returns the last part of a qualified name without template arguments.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name).trim()
}

/// Resolves a `typedef`, `using` or `#define` of the unit: the first of them.
fn aliased(unit: &Unit, name: &str) -> Option<String> {
    aliases(unit, name).next()
}

/// Resolves a name by each `typedef`, `using` or `#define` of the unit: branches of conditional compilation
/// may define it differently.
fn aliases<'u>(unit: &'u Unit, name: &'u str) -> impl Iterator<Item = String> + 'u {
    let name = last(name);
    unit.declaring(name).filter_map(move |(_, source, node)| {
        let node = tree::inner(node);
        let ty = match node.kind() {
            "preproc_def" => node.child_by_field_name("value")?,
            "type_definition" | "alias_declaration" => node.child_by_field_name("type")?,
            _ => return None,
        };
        let text = source.node_text(ty).trim();
        // `typedef struct { … } S;` defines the type itself, and `using T = ns::T;` leads back to T.
        (!text.contains('{') && last(text) != name).then(|| text.to_owned())
    })
}

/// Reports whether a type is an alias of a pointer: `typedef float *values;`, `using ptr = T *;`.
pub(crate) fn is_pointer_alias(unit: &Unit, ty: &str) -> bool {
    let name = plain(ty.split('<').next().unwrap_or(ty));
    unit.declaring(last(&name)).any(|(_, source, node)| {
        let node = tree::inner(node);
        let text = source.node_text(node);
        let is_alias = matches!(node.kind(), "type_definition" | "alias_declaration");
        is_alias && text.contains('*') && !text.contains(['{', '('])
    })
}

/// Returns all numbers and vectors, in YAML, that a type denotes in any branch of conditional compilation.
pub(crate) fn alternatives(unit: &Unit, ty: &str) -> Vec<String> {
    let name = plain(ty);
    let numbers = aliases(unit, &name).filter_map(|alias| {
        let described = describe_number(unit, &alias, Role::Input);
        Some(described.ok()?.yaml)
    });
    numbers.collect()
}

/// Returns the body of a struct of the unit.
fn body<'u>(unit: &'u Unit, name: &str) -> Option<(&'u Source, Node<'u>)> {
    let mut all = unit.declaring(last(name));
    all.find_map(|(item, source, node)| {
        let node = tree::inner(node);
        let ty = node.child_by_field_name("type").unwrap_or(node);
        let is_record = item.kind == Kind::Declaration
            && matches!(ty.kind(), "struct_specifier" | "class_specifier");
        let list = ty.child_by_field_name("body").filter(|_| is_record)?;
        Some((source, list))
    })
}

fn record(unit: &Unit, name: &str, role: Role) -> Result<TypeDescription, String> {
    if name.contains('<') {
        return Err("the fields of a template's instance are not read here".to_owned());
    }
    let Some((source, list)) = body(unit, name) else {
        return Err("the file and its includes do not define its fields".to_owned());
    };
    if list.parent().is_some_and(|parent| {
        let mut cursor = parent.walk();
        parent
            .named_children(&mut cursor)
            .any(|child| child.kind() == "base_class_clause")
    }) {
        return Err("it has a base class".to_owned());
    }
    let mut fields = Vec::new();
    let mut cursor = list.walk();
    for field in list.named_children(&mut cursor) {
        match field.kind() {
            "field_declaration" => fields.extend(field::fields(source, field)?),
            // The parser may read `union { … };` and nested types as declarations.
            "union_specifier" | "struct_specifier" => {
                return Err("it has a type in it".to_owned());
            }
            _ => {}
        }
    }
    let mut made = TypeDescription::default();
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for field in fields {
        let counts = (made.whole.len(), made.pointers.len());
        let (ty, value) = field.described(unit, &mut made)?;
        types.push(format!("{}: {ty}", field.name));
        // A search space takes such a field as padding, which has no value.
        if field.name.starts_with('_') {
            made.whole.truncate(counts.0);
            made.pointers.truncate(counts.1);
        } else {
            values.push(format!("{}: {value}", field.name));
        }
    }
    if types.is_empty() {
        return Err("it has no fields".to_owned());
    }
    let filled = made.bytes;
    made.bytes = aligned(filled, made.align);
    made.align = made.align.max(stated_alignment(unit, source, list));
    let whole = aligned(filled, made.align);
    if whole > made.bytes {
        // The fields alone do not show an explicit alignment of the type.
        types.push(format!("_padding: \"u8[{}]\"", whole - filled));
        made.bytes = whole;
    }
    if role != Role::Scalar && !made.pointers.is_empty() {
        return Err("elements of a buffer cannot have pointers in them".to_owned());
    }
    made.yaml = format!("{{ {} }}", types.join(", "));
    made.value = Some(format!("{{ {} }}", values.join(", ")));
    Ok(made)
}

/// Returns the explicit alignment of a struct before its body, 1 without one: `__align__(16)`,
/// `alignas(16)`.
fn stated_alignment(unit: &Unit, source: &Source, list: Node<'_>) -> i64 {
    let Some(whole) = list.parent() else { return 1 };
    let head = source.text(&(whole.start_byte()..list.start_byte()));
    let stated = ["__align__", "__builtin_align__", "alignas", "aligned"]
        .iter()
        .filter_map(|word| head.split_once(word)?.1.trim_start().strip_prefix('('));
    let values = stated.filter_map(|rest| {
        let value = rest.split(')').next()?;
        Host::new(unit).of_text(None, value)?.number()
    });
    values.max().unwrap_or(1).clamp(1, 128)
}

/// Rounds up to a multiple of an alignment.
fn aligned(bytes: i64, align: i64) -> i64 {
    let align = align.max(1);
    bytes.saturating_add(align - 1) / align * align
}

impl TypeDescription {
    /// Returns the type for the compiler's size of a value, 0 if it is unknown. A struct of another size than
    /// its fields have by the rules of C++ is packed, and becomes bytes.
    pub(crate) fn of_size(self, bytes: i64, role: Role) -> Result<Self, Refusal> {
        if bytes == 0 || bytes == self.bytes || self.align == 0 {
            return Ok(self);
        }
        // The first field has its place; the others are bytes after it.
        let first = self.yaml.trim_start_matches("{ ").split([',', ' ']);
        let first: Vec<&str> = first.take(2).collect();
        let is_byte = matches!(first.as_slice(), [_, "i8" | "u8" | "bool"]);
        if role == Role::Scalar || !is_byte || bytes < 2 {
            return Err(Refusal {
                why: format!("is a struct of {bytes} bytes, and its fields have {}", self.bytes),
                help: "a search space cannot describe packed fields of an argument: pass them one by one"
                    .to_owned(),
            });
        }
        Ok(Self {
            yaml: format!("{{ {}, _rest: \"u8[{}]\" }}", first.join(" "), bytes - 1),
            bytes,
            ..Self::default()
        })
    }

    /// Adds a field to a struct.
    fn add_field(&mut self, bytes: i64, align: i64) {
        self.bytes = aligned(self.bytes, align).saturating_add(bytes);
        self.align = self.align.max(align);
    }
}

#[cfg(test)]
mod tests;
