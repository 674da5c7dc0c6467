//! Linker of PTX: combines several texts into one, as for relocatable device code (`nvcc -rdc=true`) or
//! `cuLinkAddData`.

use std::collections::{BTreeMap, BTreeSet};

/// Linkage of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// Declared here, defined in another text.
    External,
    /// One definition for all texts.
    Visible,
    /// Equal definitions may be in several texts.
    Weak,
    /// Visible only in its own text.
    Internal,
}

/// One statement outside of all braces.
#[derive(Debug, Clone)]
struct Item<'a> {
    text: &'a str,
    /// Name and linkage of a function or variable.
    symbol: Option<(&'a str, Linkage)>,
}

/// A symbol that several texts define.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("multiple definition of `{0}`")]
pub(crate) struct Duplicate(String);

/// Links texts into one; a single text stays unchanged.
///
/// # Errors
/// A symbol that two texts define.
pub(crate) fn link(texts: &[String]) -> Result<String, Duplicate> {
    if let [text] = texts {
        return Ok(text.clone());
    }
    let modules: Vec<Vec<Item<'_>>> = texts.iter().map(|text| split(text)).collect();
    let chosen = choose(&modules)?;
    // PTX declares before it uses: prototypes and variables of all texts precede the functions.
    let [mut prototypes, mut variables, mut functions] = [const { String::new() }; 3];
    let mut names = BTreeSet::new();
    let mut first_file = 0;
    for (number, items) in modules.iter().enumerate() {
        let symbols = items.iter().filter_map(|item| item.symbol);
        let internal = symbols.filter(|(_, linkage)| *linkage == Linkage::Internal);
        let renamed: BTreeMap<&str, String> = internal
            .filter(|(name, _)| chosen.contains_key(name) || !names.insert((*name).to_owned()))
            .map(|(name, _)| (name, format!("{name}$linked{number}")))
            .collect();
        for (place, item) in items.iter().enumerate() {
            let is_left_out = match item.symbol {
                Some((_, Linkage::Internal)) => false,
                Some((name, _)) => chosen.get(name) != Some(&(number, place)),
                None => ![".file", ".alias"]
                    .iter()
                    .any(|kept| item.text.starts_with(kept)),
            };
            if is_left_out {
                continue;
            }
            let is_function = is_function(item.text);
            let to = match (is_function, item.symbol) {
                (true, _) if !item.text.ends_with('}') => &mut prototypes,
                (true, _) | (false, None) => &mut functions,
                (false, Some(_)) => &mut variables,
            };
            rewrite(to, item.text, &renamed, first_file);
            to.push('\n');
            if is_function && let Some(prototype) = prototype(item.text) {
                rewrite(&mut prototypes, prototype, &renamed, first_file);
                prototypes.push_str(";\n");
            }
        }
        let files = items.iter().filter(|item| item.text.starts_with(".file"));
        let numbers = files.filter_map(|item| item.text.split_whitespace().nth(1)?.parse().ok());
        first_file += numbers.max().unwrap_or(0);
    }
    Ok(head(&modules) + &prototypes + &variables + &functions)
}

/// Returns the declaration of a non-kernel function that a text defines.
fn prototype(text: &str) -> Option<&str> {
    let (head, _) = text.split_once('{')?;
    (!head.contains(".entry")).then_some(head)
}

/// Returns the name of a function that a linked text declares and does not define.
pub(crate) fn find_undefined(text: &str) -> Option<String> {
    let external = |item: &Item<'_>| match item.symbol {
        Some((name, Linkage::External)) if is_function(item.text) => Some(name.to_owned()),
        _ => None,
    };
    let mut names = split(text).into_iter().filter_map(|item| external(&item));
    names.find(|name| !vgpu::is_runtime_function(name))
}

/// Position of a statement: index of its text, and index in it.
type Place = (usize, usize);

/// Returns the position of the statement kept for each symbol of all texts.
fn choose<'a>(modules: &[Vec<Item<'a>>]) -> Result<BTreeMap<&'a str, Place>, Duplicate> {
    const ONLY_DEFINITION: u8 = 3;
    let mut chosen: BTreeMap<&str, (u8, Place)> = BTreeMap::new();
    for (number, items) in modules.iter().enumerate() {
        for (place, item) in items.iter().enumerate() {
            let Some((name, linkage)) = item.symbol else {
                continue;
            };
            let rank = match linkage {
                Linkage::Internal => continue,
                Linkage::External => 0,
                _ if !is_definition(item.text) => 1,
                Linkage::Weak => 2,
                Linkage::Visible => ONLY_DEFINITION,
            };
            let before = chosen.get(name).map(|(rank, _)| *rank);
            if before == Some(ONLY_DEFINITION) && rank == ONLY_DEFINITION {
                return Err(Duplicate(name.to_owned()));
            }
            if before.is_none_or(|before| before < rank) {
                chosen.insert(name, (rank, (number, place)));
            }
        }
    }
    let places = chosen.into_iter().map(|(name, (_, place))| (name, place));
    Ok(places.collect())
}

/// Reports whether a statement defines its symbol: a variable, or a function with a body.
fn is_definition(text: &str) -> bool {
    text.ends_with('}') || !is_function(text)
}

fn is_function(text: &str) -> bool {
    let head = text.split(['(', '{']).next().unwrap_or_default();
    head.split_whitespace()
        .any(|word| word == ".func" || word == ".entry")
}

/// Returns the header with the newest version and target of all texts.
fn head(modules: &[Vec<Item<'_>>]) -> String {
    let latest = |directive: &str| {
        let items = modules.iter().flatten();
        let values = items.filter_map(|item| item.text.strip_prefix(directive));
        let number = |text: &str| -> u32 {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        let latest = values.max_by_key(|value| number(value));
        latest.unwrap_or_default().trim().to_owned()
    };
    let (version, target) = (latest(".version"), latest(".target"));
    format!(".version {version}\n.target {target}\n.address_size 64\n")
}

/// Splits a text into its statements, without comments.
fn split(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            let (item, after) = rest.split_at(item_bytes(rest));
            let item = item.trim_end();
            if !item.starts_with(".section") && !item.is_empty() {
                let symbol = symbol(item);
                items.push(Item { text: item, symbol });
            }
            rest = after;
        }
        rest = rest.trim_start();
    }
    items
}

/// Returns the size of the statement at the start of a text.
fn item_bytes(text: &str) -> usize {
    let by_line = [".version", ".target", ".address_size", ".file"];
    if by_line.iter().any(|directive| text.starts_with(directive)) {
        return text.find('\n').unwrap_or(text.len());
    }
    let has_body = text.starts_with(".section") || is_function(text);
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && has_body {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns name and linkage of the symbol that a statement declares.
fn symbol(item: &str) -> Option<(&str, Linkage)> {
    let mut linkage = Linkage::Internal;
    let mut rest = item;
    loop {
        rest = rest.trim_start();
        // The parameters that a function returns, and attributes of variables.
        if rest.starts_with('(') {
            rest = rest.split_once(')')?.1;
            continue;
        }
        if !rest.starts_with('.') {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            if word.is_empty() {
                return None;
            }
            if word.bytes().all(|byte| byte.is_ascii_digit()) {
                // The number of an alignment.
                rest = after;
                continue;
            }
            return Some((word, linkage));
        }
        let end = rest
            .get(1..)?
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        match word {
            ".extern" => linkage = Linkage::External,
            ".visible" => linkage = Linkage::Visible,
            ".entry" if linkage == Linkage::Internal => linkage = Linkage::Visible,
            ".weak" | ".common" => linkage = Linkage::Weak,
            ".version" | ".target" | ".address_size" | ".file" | ".pragma" | ".alias" => {
                return None;
            }
            _ => {}
        }
        rest = after;
    }
}

/// Appends a statement with new names and with the numbers of its files after those of earlier texts.
fn rewrite(out: &mut String, text: &str, renamed: &BTreeMap<&str, String>, first_file: u32) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut rest = text;
    let mut names_file = false;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let end = rest.get(1..).and_then(|rest| rest.find('"'));
            let (string, after) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
            out.push_str(string);
            rest = after;
            continue;
        }
        if !is_word(first) {
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        match (names_file, word.parse::<u32>(), renamed.get(word)) {
            (true, Ok(file), _) => out.push_str(&(file + first_file).to_string()),
            (_, _, Some(name)) => out.push_str(name),
            _ => out.push_str(word),
        }
        names_file = matches!(word, ".loc" | ".file" | "inlined_at");
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    #[test]
    fn texts_share_visible_symbols_and_keep_their_own() {
        let first = format!(
            "{HEAD}.extern .func (.param .b32 r) twice(.param .b32 a);\n\
             .extern .global .align 4 .u32 shared_word;\n\
             .global .align 1 .b8 $str[3] = {{97, 59, 0}};\n.file\t1 \"a.cu\"\n\
             .weak .func both() {{ ret; }}\n.weak .func other();\n.alias other, both;\n\
             .visible .entry k() {{ .loc 1 2 3\n mov.u64 %rd1, $str; ret; }}\n"
        );
        let second = format!(
            "{}.visible .global .align 4 .u32 shared_word = 7;\n// a comment; with }}\n\
             .global .align 1 .b8 $str[3] = {{98, 0, 0}};\n.file\t1 \"b.cu\"\n\
             .weak .func both() {{ ret; }}\n\
             .visible .func (.param .b32 r) twice(.param .b32 a) {{ .loc 1 5 1, function_name $s, inlined_at 1 9 1\n\
             mov.u64 %rd1, $str; ret; }}\n.section .debug_str {{ $s: .b8 1 }}\n",
            HEAD.replace("8.0", "8.3")
        );
        let linked = link(&[first, second]).expect("one text");
        assert!(
            linked.starts_with(".version 8.3\n.target sm_80\n"),
            "{linked}"
        );
        // A prototype and a definition of each.
        assert_eq!(linked.matches(" twice(").count(), 2, "{linked}");
        assert_eq!(linked.matches("both()").count(), 2, "{linked}");
        assert!(!linked.contains(".extern"), "{linked}");
        assert!(linked.contains(".alias other, both;"), "{linked}");
        assert!(linked.contains("$str$linked1[3]") && linked.contains(", $str$linked1;"));
        assert!(linked.contains(".file\t2 \"b.cu\"") && linked.contains(".loc 2 5 1"));
        assert!(linked.contains("inlined_at 2 9 1") && linked.contains(".loc 1 2 3"));
        assert!(
            vgpu::Module::load(&linked.replace("mov.u64 %rd1", ".reg .b64 %rd1; mov.u64 %rd1"))
                .is_ok()
        );
    }

    #[test]
    fn a_symbol_that_two_texts_define_is_an_error() {
        let text = format!("{HEAD}.visible .func f() {{ ret; }}\n");
        let error = link(&[text.clone(), text.clone()]).expect_err("two definitions");
        let uses = format!("{HEAD}.extern .func g();\n.extern .func (.param .b32 r) vprintf();\n");
        let linked = link(&[text, uses]).expect("one text");
        assert_eq!(find_undefined(&linked).as_deref(), Some("g"));
        assert_eq!(error.to_string(), "multiple definition of `f`");
    }
}
