//! Groups of conditional compilation that hold the beginning of a declaration:
//!
//! ```text
//! #ifdef BOUNDS
//! __launch_bounds__(256)
//! #endif
//! __global__ void k(float* y) { … }
//! ```
//!
//! The grammar parses such a group as a list of declarations, and the declaration after it without its
//! beginning. The tree omits the group, and the item has it in its text.

use super::words;
use std::ops::Range;

/// Words that begin a declaration and cannot end one.
const BEGINNINGS: [&str; 27] = [
    "__launch_bounds__",
    "__maxnreg__",
    "__cluster_dims__",
    "__block_size__",
    "__global__",
    "__device__",
    "__host__",
    "__constant__",
    "__shared__",
    "__managed__",
    "__grid_constant__",
    "__forceinline__",
    "__inline__",
    "__noinline__",
    "__attribute__",
    "__align__",
    "__restrict__",
    "alignas",
    "const",
    "constexpr",
    "extern",
    "inline",
    "static",
    "template",
    "typedef",
    "virtual",
    "volatile",
];

/// A group that is a part of the declaration after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadGroup {
    /// From `#if` to the end of `#endif`.
    pub(super) at: Range<usize>,
    /// The branch that the tree has.
    shown: Option<Range<usize>>,
}

impl HeadGroup {
    /// Returns the ranges that the tree omits.
    pub(super) fn hidden(&self) -> Vec<Range<usize>> {
        match &self.shown {
            Some(shown) => vec![self.at.start..shown.start, shown.end..self.at.end],
            None => vec![self.at.clone()],
        }
    }
}

/// A group of conditional compilation.
struct Group {
    at: Range<usize>,
    /// Index of the line after it.
    next: usize,
    /// Contents of the branches, each with its condition.
    branches: Vec<(String, Range<usize>)>,
}

/// Brackets around a position.
#[derive(Debug, Clone, Default)]
struct Scope {
    /// Open braces: true for those of a namespace or of `extern "C"`.
    open: Vec<bool>,
    parentheses: usize,
    /// Text since the last declaration.
    head: String,
}

/// Reports whether the brace after this text opens a namespace or `extern "C"`, whose declarations are those of
/// the file.
pub(crate) fn opens_scope(head: &str) -> bool {
    let head = words(head);
    head.contains(&"namespace") || head == ["extern"]
}

impl Scope {
    fn is_file(&self) -> bool {
        self.parentheses == 0 && self.open.iter().all(|scope| *scope)
    }

    fn read(&mut self, line: &str) {
        for c in line.chars() {
            match c {
                '{' => {
                    self.open.push(opens_scope(&self.head));
                    self.head.clear();
                }
                '}' => {
                    self.open.pop();
                    self.head.clear();
                }
                ';' => self.head.clear(),
                '(' => self.parentheses += 1,
                ')' => self.parentheses = self.parentheses.saturating_sub(1),
                _ => {}
            }
            if !matches!(c, '{' | '}' | ';') {
                self.head.push(c);
            }
        }
        self.head.push(' ');
    }
}

/// Returns the groups of a text without comments and literals that hold the beginning of a declaration.
pub(super) fn head_groups(code: &str) -> Vec<HeadGroup> {
    let lines = lines(code);
    let mut found = Vec::new();
    let mut scope = Scope::default();
    // The state at each open `#if`, and after its first branch.
    let mut states: Vec<(Scope, Option<Scope>)> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let text = code.get(line.clone()).unwrap_or_default();
        match directive(text) {
            Some("if" | "ifdef" | "ifndef") => {
                let group = group(code, &lines, at - 1).filter(|_| scope.is_file());
                match group.and_then(|group| Some((head(code, &group)?, group.next))) {
                    Some((head, next)) => {
                        at = next;
                        found.push(head);
                    }
                    None => states.push((scope.clone(), None)),
                }
            }
            Some("else" | "elif" | "elifdef" | "elifndef") => {
                if let Some((before, first)) = states.last_mut() {
                    let ended = std::mem::replace(&mut scope, before.clone());
                    first.get_or_insert(ended);
                }
            }
            Some("endif") => {
                if let Some((_, Some(first))) = states.pop() {
                    scope = first;
                }
            }
            Some(_) => {}
            None => scope.read(text),
        }
    }
    found
}

/// Returns the lines of a text with their line ends; a directive has its continued lines.
fn lines(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in code.split_inclusive('\n') {
        end += line.len();
        let whole = code.get(start..end).unwrap_or_default();
        if directive(whole).is_none() || !line.trim_end().ends_with('\\') {
            found.push(start..end);
            start = end;
        }
    }
    if start < end {
        found.push(start..end);
    }
    found
}

/// Returns the name of a directive.
fn directive(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic());
    rest.get(..end.unwrap_or(rest.len()))
}

/// Returns the group that starts at a line; `None` without an end.
fn group(code: &str, lines: &[Range<usize>], first: usize) -> Option<Group> {
    let mut depth = 0_usize;
    let mut branches: Vec<(String, Range<usize>)> = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(first) {
        let text = code.get(line.clone())?;
        let name = directive(text).unwrap_or_default();
        let outer = depth == 1;
        match name {
            "if" | "ifdef" | "ifndef" => depth += 1,
            "endif" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        let starts = index == first || outer && name.starts_with("el");
        if (starts || depth == 0)
            && let Some((_, range)) = branches.last_mut()
        {
            range.end = line.start;
        }
        if starts {
            branches.push((text.trim().to_owned(), line.end..line.end));
        }
        if depth == 0 {
            let at = lines.get(first)?.start..line.end;
            return Some(Group {
                at,
                next: index + 1,
                branches,
            });
        }
    }
    None
}

/// Returns the group if it holds the beginning of a declaration.
fn head(code: &str, group: &Group) -> Option<HeadGroup> {
    let content = |range: &Range<usize>| -> String {
        let lines = code.get(range.clone()).unwrap_or_default().lines();
        let lines = lines.filter(|line| directive(line).is_none());
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let contents: Vec<String> = group
        .branches
        .iter()
        .map(|(_, range)| content(range))
        .collect();
    let after = code.get(group.at.end..)?.trim_start();
    let has_body = after.starts_with('{');
    let begins = |text: &String| {
        let all = words(text);
        let known = all.first().is_some_and(|word| BEGINNINGS.contains(word));
        text.is_empty() || has_body || known || all == [text.as_str()]
    };
    let is_head = contents.iter().any(|text| !text.is_empty())
        && contents
            .iter()
            .all(|text| !text.contains(['{', '}', ';']) && begins(text))
        && !after.is_empty();
    let mut filled = group.branches.iter().zip(&contents);
    let (branch, text) = filled.find(|(_, text)| !text.is_empty())?;
    let (condition, range) = branch;
    let nested = code
        .get(range.clone())?
        .lines()
        .any(|line| directive(line).is_some());
    // Other beginnings are attributes, without which the tree is the same.
    let is_shown = has_body || text.starts_with("template") && !is_unset(code, condition);
    is_head.then(|| HeadGroup {
        at: group.at.clone(),
        shown: Some(range.clone()).filter(|_| is_shown && !nested),
    })
}

/// Reports whether a condition is `#ifdef` of a name that the text does not define.
fn is_unset(code: &str, condition: &str) -> bool {
    let name = condition.split_once("ifdef").map(|(_, name)| name.trim());
    let defines = |name: &str| {
        code.lines()
            .any(|line| directive(line) == Some("define") && words(line).get(1) == Some(&name))
    };
    name.is_some_and(|name| !defines(name))
}

#[cfg(test)]
mod tests {
    use super::head_groups;

    /// Returns the text of the groups and what the tree has of them.
    fn groups(code: &str) -> Vec<(&str, &str)> {
        let text = |group: &super::HeadGroup| {
            let shown = group.shown.clone().unwrap_or_default();
            (&code[group.at.clone()], code[shown].trim())
        };
        head_groups(code).iter().map(text).collect()
    }

    #[test]
    fn attributes_before_a_declaration_belong_to_it() {
        let bounds = "#ifdef BOUNDS\n__launch_bounds__(256)\n#else\nPLAIN\n#endif\n";
        let code = format!("namespace a {{\nint b;\n{bounds}__global__ void k();\n}}\n");
        assert_eq!(groups(&code), [(bounds, "")]);
        let template = "#ifndef PLAIN\ntemplate <int M>\n#endif\n";
        let code = format!("{template}__global__ void k();\n");
        assert_eq!(groups(&code), [(template, "template <int M>")]);
        let unset = template.replace("ifndef", "ifdef");
        assert_eq!(groups(&format!("{unset}void k();")), [(unset.as_str(), "")]);
    }

    #[test]
    fn heads_before_one_body_show_the_first() {
        let heads = "#if A\n__global__ void k(int n)\n#else\n__global__ void k()\n#endif\n";
        let code = format!(
            "{heads}{{ }}\n#if B\nvoid f() {{\n#else\nvoid f(int a) {{\n#endif\n}}\n{heads}{{ }}\n"
        );
        let shown = (heads, "__global__ void k(int n)");
        assert_eq!(groups(&code), [shown, shown]);
    }

    #[test]
    fn other_groups_stay() {
        for code in [
            "#ifdef A\nint a;\n#endif\nint b;\n",
            "#if A\nvoid f() {\n#else\nvoid f(int a) {\n#endif\n}\n",
            "void f(\n#ifdef A\nconst int a\n#endif\n);\n",
            "void f() {\n#ifdef A\n__attribute__((unused))\n#endif\nint a;\n}\n",
            "#ifndef A\n#define A\n#endif\nint b;\n",
            "#ifdef A\nBIND(f32)\n#endif\nint b;\n",
        ] {
            assert_eq!(groups(code), [], "{code}");
        }
    }
}
