//! Reachability: the items of a unit that a kernel needs, and the template made from them.

mod headers;
mod pragmas;

use super::kernel::is_overload;
use super::tree::{GNU_KEYWORDS, words};
use super::unit::{Around, Branch, Item, Kind, Unit, node_of};
use headers::include;
pub(crate) use pragmas::is_pushed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

/// Prefix of every template: nvcc's implicit include and C's headers of constants.
pub(crate) const PRELUDE: &str = "#include <cuda_runtime.h>\n#include <assert.h>\n#include <float.h>\n\
                       #include <stdint.h>\n#include <stdio.h>\n";

/// Identifiers that mark a use of cooperative groups.
const GROUPS: [&str; 9] = [
    "cooperative_groups",
    "cg",
    "this_thread_block",
    "thread_block",
    "this_grid",
    "grid_group",
    "tiled_partition",
    "thread_block_tile",
    "coalesced_threads",
];

/// Headers that others include (cuBLAS includes the half types), with the names that require them, as
/// words.
const IMPLIED: [(&str, &str); 6] = [
    (
        "type_traits",
        "bool_constant common_type common_type_t conjunction_v disjunction_v invoke_result_t \
         is_arithmetic is_base_of is_base_of_v is_class_v is_const_v is_convertible \
         is_convertible_v is_enum is_enum_v is_pointer is_pointer_v is_same is_same_v is_signed \
         is_signed_v is_trivially_copyable is_trivially_copyable_v is_unsigned is_unsigned_v \
         is_void is_void_v make_signed make_signed_t make_unsigned make_unsigned_t remove_const \
         remove_cv remove_cvref remove_cvref_t remove_pointer remove_pointer_t remove_reference \
         underlying_type void_t enable_if enable_if_t conditional conditional_t integral_constant \
         true_type false_type is_integral is_integral_v is_floating_point is_floating_point_v \
         is_arithmetic_v remove_const_t remove_cv_t remove_reference_t decay_t underlying_type_t",
    ),
    ("limits", "numeric_limits"),
    ("iterator", "iterator_traits reverse_iterator"),
    (
        "cuda_fp16.h",
        "half __half half2 __half2 __float2half __half2float",
    ),
    (
        "cuda_bf16.h",
        "__nv_bfloat16 nv_bfloat16 __nv_bfloat162 nv_bfloat162",
    ),
    ("cuda_fp8.h", "__nv_fp8_e4m3 __nv_fp8_e5m2"),
];

/// Kind of definition of a constant that becomes a parameter.
#[derive(Debug, Clone)]
pub(crate) enum Definition {
    /// A `#define`.
    Macro,
    /// A constant at file scope: its whole item.
    Constant,
    /// A constant in the kernel: the bytes of its declaration.
    Local(Range<usize>),
}

/// A constant of the source that a search space may vary.
#[derive(Debug, Clone)]
pub(crate) struct Tunable {
    /// Its name, which is also the macro's.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: i64,
    /// Index of its item.
    pub(crate) item: usize,
    /// Kind of the definition.
    pub(crate) definition: Definition,
}

/// Computes the items that a kernel reaches, with the host items that the compiler requested.
pub(crate) fn reach(unit: &Unit, kernel: usize, demanded: &BTreeSet<String>) -> BTreeSet<usize> {
    let Some(own) = unit.items.get(kernel) else {
        return BTreeSet::new();
    };
    let mut kept = BTreeSet::from([kernel]);
    let mut wanted: BTreeSet<&str> = own
        .words
        .iter()
        .chain(demanded)
        .map(String::as_str)
        .collect();
    loop {
        let before = kept.len();
        for (at, item) in unit.items.iter().enumerate() {
            let named = |words: &dyn Fn(&str) -> bool| item.names.iter().any(|name| words(name));
            let reached = match item.kind {
                Kind::Kernel => {
                    let same = named(&|name| own.names.iter().any(|known| known == name));
                    same && !own.excludes(item) && !is_overload(unit, own, item)
                }
                Kind::Device | Kind::Declaration | Kind::Expansion | Kind::Macro => {
                    named(&|name| wanted.contains(name))
                }
                Kind::Host | Kind::HostVariable => named(&|name| demanded.contains(name)),
                Kind::Pragma => true,
                Kind::Undefine | Kind::Using | Kind::Include | Kind::Header => false,
            };
            if reached && kept.insert(at) {
                wanted.extend(item.words.iter().map(String::as_str));
            }
        }
        if kept.len() == before {
            return kept;
        }
    }
}

/// A template cut out of a unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Template {
    /// Its text.
    pub(crate) text: String,
    /// Every word in it.
    pub(crate) words: BTreeSet<String>,
    /// Headers that were not found.
    pub(crate) missing: Vec<String>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Writes the kept items as a template, each piece with its position in the original. Headers with
/// `demanded` names are kept too, since template arguments are not in the text.
pub(crate) fn write(
    unit: &Unit,
    kept: &BTreeSet<usize>,
    demanded: &BTreeSet<String>,
    tunables: &[Tunable],
    available: &dyn Fn(&str) -> bool,
) -> Template {
    let mut template = Template::default();
    let words_of_kept = kept.iter().flat_map(|at| &unit.item(*at).words);
    template
        .words
        .extend(words_of_kept.chain(demanded).cloned());
    // Unchanged headers keep all of their items.
    let whole = kept.iter().any(|at| unit.item(*at).kind == Kind::Header);
    let mut pieces: Vec<(&Item, Vec<&Around>, String)> = Vec::new();
    let own = |item: &Item| !whole || item.file == 0;
    for (at, item) in unit.items.iter().enumerate().filter(|(_, item)| own(item)) {
        let emitted = match item.kind {
            Kind::Header => kept.contains(&at).then(|| {
                let path = item.names.first().map_or("", String::as_str);
                format!("#include \"{path}\"\n")
            }),
            Kind::Include => include(unit, item, &mut template, available),
            Kind::Using if whole || uses(unit, item, kept, &template.words) => {
                Some(format!("{}\n", unit.text(item)))
            }
            Kind::Undefine => {
                let of_kept = |each: &usize| {
                    let other = unit.item(*each);
                    other.kind == Kind::Macro && other.names == item.names
                };
                (whole || kept.iter().any(of_kept))
                    .then(|| format!("{}\n", unit.text(item).trim_end()))
            }
            Kind::Pragma => pragmas::written(unit, at, kept, tunables, &mut template.notes),
            _ if kept.contains(&at) => text_of(unit, at, tunables),
            _ => None,
        };
        if let Some(text) = emitted {
            let text = own_default(item, tunables, text);
            pieces.push((item, around(item, tunables), text));
        }
    }
    let body = wrapped(unit, &pieces);
    let mut head = PRELUDE.to_owned();
    for (header, names) in IMPLIED {
        let line = format!("#include <{header}>\n");
        let mut names = names.split_whitespace();
        if names.any(|name| template.words.contains(name)) && !body.contains(&line) {
            head.push_str(&line);
        }
    }
    for (gnu, standard) in GNU_KEYWORDS {
        if words(&body).contains(&gnu) {
            // Writing to a String cannot fail.
            let _ = writeln!(head, "#define {gnu} {standard}");
        }
    }
    for tunable in tunables {
        if !matches!(tunable.definition, Definition::Macro) {
            // Writing to a String cannot fail.
            let _ = writeln!(
                head,
                "#ifndef {0}\n#define {0} {1}\n#endif",
                tunable.name, tunable.value
            );
        }
    }
    template.text = head + &body;
    template
}

/// Reports whether a `using namespace` names a namespace of the template.
fn uses(unit: &Unit, item: &Item, kept: &BTreeSet<usize>, words: &BTreeSet<String>) -> bool {
    let Some(path) = item.names.first() else {
        return false;
    };
    let first = path
        .split("::")
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    let inside = |at: &usize| {
        let around = &unit.item(*at).around;
        let is_it = |each: &Around| matches!(each, Around::Namespace(name) | Around::Inline(name) if name == first);
        around.iter().any(is_it)
    };
    match first {
        "std" => true,
        "nvcuda" => words.contains("wmma") || words.contains("fragment"),
        "cooperative_groups" => GROUPS.iter().any(|word| words.contains(*word)),
        "cub" => words.contains("cub"),
        _ => unit.namespaces.contains(first) && kept.iter().any(inside),
    }
}

/// Returns an item's text without the definitions that became parameters.
fn text_of(unit: &Unit, at: usize, tunables: &[Tunable]) -> Option<String> {
    let item = unit.item(at);
    let text = match item.kind {
        Kind::Expansion => unit.text(item).to_owned(),
        // Text that the grammar cannot parse may span uses of macros, which are separate items.
        _ => unit.file(item.file).own_text(&item.at),
    };
    let mut text = text.trim_end().to_owned();
    // The blank line after the last backslash of a macro has been removed.
    while item.kind == Kind::Macro && text.ends_with('\\') {
        text.pop();
        text.truncate(text.trim_end().len());
    }
    let here = tunables.iter().filter(|tunable| tunable.item == at);
    for tunable in here {
        match &tunable.definition {
            Definition::Macro => {
                // The search space defines the name; a second definition would replace the chosen
                // value.
                return Some(format!("#ifndef {}\n{text}\n#endif\n", tunable.name));
            }
            Definition::Constant => return None,
            Definition::Local(range) => {
                let start = range.start.checked_sub(item.at.start)?;
                let end = range.end.checked_sub(item.at.start)?;
                let old = text.get(start..end)?;
                // Line breaks stay, so that the compiler's later messages have the correct lines.
                let blank: String = old
                    .chars()
                    .map(|c| if c == '\n' { '\n' } else { ' ' })
                    .collect();
                text.replace_range(start..end, &blank);
            }
        }
    }
    if item.kind != Kind::Macro && !text.ends_with([';', '}']) {
        text.push(';');
    }
    let opens = ["struct", "class", "enum", "union"];
    let head = words(&text).into_iter().take(12).collect::<Vec<_>>();
    if text.ends_with('}')
        && head.iter().any(|word| opens.contains(word))
        && item.kind == Kind::Declaration
    {
        text.push(';');
    }
    text.push('\n');
    Some(text)
}

/// Returns the scopes that enclose an item in the template. `#ifndef NAME` of a name that became a
/// parameter is omitted: the search space defines the name, and the other definitions of the group must
/// stay.
fn around<'u>(item: &'u Item, tunables: &[Tunable]) -> Vec<&'u Around> {
    let kept = |around: &&Around| match around {
        Around::Condition(branch) => !is_default_of(branch, tunables),
        _ => true,
    };
    item.around.iter().filter(kept).collect()
}

fn is_default_of(branch: &Branch, tunables: &[Tunable]) -> bool {
    let name = branch.undefined();
    name.is_some_and(|name| tunables.iter().any(|tunable| tunable.name == name))
}

/// Wraps a macro in `#ifndef` if its group is of a parameter.
fn own_default(item: &Item, tunables: &[Tunable], text: String) -> String {
    let name = item.names.first().filter(|_| item.kind == Kind::Macro);
    let grouped = item.around.iter().any(
        |around| matches!(around, Around::Condition(branch) if is_default_of(branch, tunables)),
    );
    match name {
        Some(name) if grouped && tunables.iter().all(|tunable| tunable.name != *name) => {
            format!("#ifndef {name}\n{text}#endif\n")
        }
        _ => text,
    }
}

/// Joins the pieces with their enclosing scopes, each after its position in the original. A scope
/// shared by several pieces is written once: the first definition in `#ifndef A` would otherwise
/// end the branch of the others.
fn wrapped(unit: &Unit, pieces: &[(&Item, Vec<&Around>, String)]) -> String {
    let mut body = String::new();
    let mut open: Vec<&Around> = Vec::new();
    let close = |body: &mut String, open: &mut Vec<&Around>, left: usize| {
        while open.len() > left {
            body.push_str(match open.pop() {
                Some(Around::Condition(_)) => "#endif\n",
                _ => "}\n",
            });
        }
    };
    for (item, around, text) in pieces {
        let mut same = open.iter().zip(around).take_while(|(a, b)| a == b).count();
        let later = open.get(same).zip(around.get(same));
        if let Some((rest, next)) = later.and_then(|(a, b)| Some((continued(unit, a, b)?, *b))) {
            close(&mut body, &mut open, same + 1);
            open.truncate(same);
            open.push(next);
            // Writing to a String cannot fail.
            let _ = writeln!(body, "{rest}");
            same += 1;
        }
        close(&mut body, &mut open, same);
        for each in around.iter().skip(same) {
            // Writing to a String cannot fail.
            let _ = match each {
                Around::Namespace(name) => writeln!(body, "namespace {name} {{"),
                Around::Inline(name) => writeln!(body, "inline namespace {name} {{"),
                Around::Linkage => writeln!(body, "extern \"C\" {{"),
                Around::Condition(branch) => writeln!(body, "{}", branch.opening),
            };
            open.push(each);
        }
        let file = unit.file(item.file);
        let shown = file.shown.replace('\\', "\\\\").replace('"', "\\\"");
        let line = file.line(item.at.start);
        let _ = write!(body, "#line {line} \"{shown}\"\n{text}");
    }
    close(&mut body, &mut open, 0);
    body
}

/// Returns the directives from a branch to a later one of the same group. As a separate group the later
/// branch would test a state that the first one has changed: `#ifndef A`, `#define A`, `#else`.
fn continued<'u>(unit: &Unit, first: &Around, later: &'u Around) -> Option<&'u str> {
    let (Around::Condition(first), Around::Condition(later)) = (first, later) else {
        return None;
    };
    let rest = later
        .opening
        .strip_prefix(&first.opening)?
        .strip_prefix('\n')?;
    let is_same = first.at.0 == later.at.0 && rest.trim_start_matches(['#', ' ']).starts_with("el");
    let between = unit.file(first.at.0).code(&(first.at.1..later.at.1));
    let (mut depth, mut ended) = (0_usize, !is_same);
    // The first line opens the branch.
    for line in between.lines().skip(1) {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        match directive {
            Some(text) if text.starts_with("if") => depth += 1,
            Some(text) if text.starts_with("endif") => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => ended = true,
            },
            _ => {}
        }
    }
    (!ended).then_some(rest)
}

/// Words in upper case that name a tile, a block or an unroll factor.
const TILING: [&str; 21] = [
    "BLOCK", "TILE", "UNROLL", "STAGE", "THREAD", "COARS", "VEC", "PER_", "ITEMS", "BM", "BN",
    "BK", "TM", "TN", "TK", "WM", "WN", "WK", "BR", "BC", "CHUNK",
];
/// Valid tile values.
const TILE_VALUES: Range<i64> = 1..1025;

/// Reports whether a constant of this name and value looks like a tile size.
pub(crate) fn looks_like_tiling(name: &str, value: i64) -> bool {
    let upper = name.to_uppercase();
    // Two letters occur inside other words, so they must be a complete part of the name.
    let short = |word: &str| word.len() == 2;
    let named = TILING.iter().any(|word| {
        if short(word) {
            upper == **word
                || upper.starts_with(&format!("{word}_"))
                || upper.ends_with(&format!("_{word}"))
        } else {
            upper.contains(word)
        }
    });
    // A warp has 32 lanes on every device, and a number of blocks is not an extent of a block.
    let fixed =
        upper.contains("WARP_SIZE") || upper.contains("WARPSIZE") || upper.contains("NUM_BLOCKS");
    named && !fixed && TILE_VALUES.contains(&value) && value & (value - 1) == 0
}

/// Returns the powers of two around a value, with the value.
pub(crate) fn neighbours(value: i64) -> Vec<i64> {
    let below = [4, 2].map(|by| value / by);
    let above = [1, 2, 4].map(|by| value.saturating_mul(by));
    let mut all: Vec<i64> = below
        .into_iter()
        .chain(above)
        .filter(|v| TILE_VALUES.contains(v))
        .collect();
    all.dedup();
    all
}

/// Collects the names that templates, functions and loops of the kept items declare locally.
pub(crate) fn given_names(unit: &Unit, kept: &BTreeSet<usize>) -> BTreeMap<String, usize> {
    let mut given = BTreeMap::new();
    for at in kept {
        let item = unit.item(*at);
        if item.kind == Kind::Macro {
            continue;
        }
        let Some((source, node)) = node_of(unit, item) else {
            continue;
        };
        super::tree::visit(node, &mut |node| {
            if matches!(
                node.kind(),
                "parameter_declaration"
                    | "optional_parameter_declaration"
                    | "declaration"
                    | "field_declaration"
                    | "type_parameter_declaration"
            ) {
                for name in super::tree::declared(source, node) {
                    *given.entry(name).or_default() += 1;
                }
            }
            true
        });
    }
    given
}
