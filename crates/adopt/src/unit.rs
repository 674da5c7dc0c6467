//! A translation unit: a CUDA file and the project headers that it includes, as one list of items.

mod branch;
mod defining;
mod kind;

use super::AdoptError;
use super::macros::Launching;
use super::tree::{Node, Source, words};
pub(crate) use branch::Branch;
use branch::{guarded, inside};
use defining::{Defining, Use};
pub(crate) use kind::Kind;
use kind::{directive, kind_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of files of a unit.
const MAX_FILES: usize = 256;
/// Maximum number of parent folders searched for a header.
const MAX_ANCESTORS: usize = 4;
/// Maximum number of folders searched below each of these.
const MAX_FOLDERS: usize = 256;

/// A scope that encloses an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Around {
    /// A namespace; the name is empty for an anonymous one.
    Namespace(String),
    /// An `inline` namespace, which names need not mention.
    Inline(String),
    /// `extern "C"`.
    Linkage,
    /// A branch of conditional compilation.
    Condition(Branch),
}

/// An item at file scope.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Index of the file.
    pub(crate) file: usize,
    /// Byte range, with the groups of conditional compilation that begin it.
    pub(crate) at: Range<usize>,
    /// Byte range of its syntax node.
    node: Range<usize>,
    /// Kind.
    pub(crate) kind: Kind,
    /// Declared names; for an include its spelled name.
    pub(crate) names: Vec<String>,
    /// Every identifier in it and in the conditions around it.
    pub(crate) words: BTreeSet<String>,
    /// Enclosing scopes, outermost first.
    pub(crate) around: Vec<Around>,
}

impl Item {
    /// Returns a declared name with its namespaces.
    pub(crate) fn path(&self, name: &str) -> String {
        let spaces = self.around.iter().filter_map(|around| match around {
            Around::Namespace(name) if !name.is_empty() => Some(format!("{name}::")),
            _ => None,
        });
        spaces.chain([name.to_owned()]).collect()
    }
}

/// All items in compilation order.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The files, the adopted one first; then the expansions of launching macros.
    pub(crate) files: Vec<Source>,
    /// The items.
    pub(crate) items: Vec<Item>,
    /// Declared namespaces.
    pub(crate) namespaces: BTreeSet<String>,
}

impl Unit {
    /// Reads a file and the project files that it includes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(path: &Path, include: &[PathBuf]) -> Result<Self, AdoptError> {
        let mut unit = Reader::read(path, include, Defining::default())?;
        let defining = Defining::collect(&unit.files);
        let used = |source: &Source| !defining.uses(source).is_empty();
        if !defining.scopes.is_empty() || unit.files.iter().any(used) {
            // Again, because a file may use macros of a header that it includes.
            unit = Reader::read(path, include, defining)?;
        }
        unit.judge_functions();
        unit.write_out_macros();
        Ok(unit)
    }

    /// Adds expansions of launching macros as files without items.
    fn write_out_macros(&mut self) {
        let launching = Launching::collect(&self.files);
        let made = self.files.iter().filter_map(|source| {
            let text = launching.written_out(source);
            let some = !text.is_empty();
            some.then(|| Source::parse(&source.path, source.shown.clone(), text))?
        });
        let made: Vec<Source> = made.collect();
        self.files.extend(made);
    }

    /// Returns an item by its number.
    #[expect(
        clippy::indexing_slicing,
        reason = "numbers of items are places in this very list"
    )]
    pub(crate) fn item(&self, at: usize) -> &Item {
        &self.items[at]
    }

    /// Returns a file by its number.
    #[expect(
        clippy::indexing_slicing,
        reason = "numbers of files are places in this very list"
    )]
    pub(crate) fn file(&self, number: usize) -> &Source {
        &self.files[number]
    }

    /// Returns an item's text.
    pub(crate) fn text(&self, item: &Item) -> &str {
        self.file(item.file).text(&item.at)
    }

    /// Returns the items that declare a name with their nodes.
    pub(crate) fn declaring<'u>(
        &'u self,
        name: &str,
    ) -> impl Iterator<Item = (&'u Item, &'u Source, Node<'u>)> {
        // A macro's declaration has no syntax tree.
        let named = move |item: &&Item| {
            item.kind != Kind::Expansion && item.names.iter().any(|known| known == name)
        };
        self.items.iter().filter(named).filter_map(|item| {
            let (source, node) = node_of(self, item)?;
            Some((item, source, node))
        })
    }

    /// Classifies functions whose annotations are macros.
    fn judge_functions(&mut self) {
        let mut annotations: BTreeMap<String, Kind> = BTreeMap::new();
        for item in self.items.iter().filter(|item| item.kind == Kind::Macro) {
            let text = self.text(item);
            let kind = match text {
                text if text.contains("__global__") => Kind::Kernel,
                text if text.contains("__device__") => Kind::Device,
                _ => continue,
            };
            for name in &item.names {
                annotations.entry(name.clone()).or_insert(kind);
            }
        }
        let mut found = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            if item.kind != Kind::Host {
                continue;
            }
            let text = self.text(item);
            let head = text.split(['{', ';']).next().unwrap_or(text);
            let mut kinds = words(head)
                .into_iter()
                .filter_map(|word| annotations.get(word));
            if let Some(kind) = kinds.next() {
                found.push((at, *kind));
            }
        }
        for (at, kind) in found {
            if let Some(item) = self.items.get_mut(at) {
                item.kind = kind;
            }
        }
    }
}

struct Reader<'i> {
    unit: Unit,
    include: &'i [PathBuf],
    /// Canonical paths of the files read.
    seen: Vec<PathBuf>,
    defining: Defining,
    /// Uses of macros by the index of their file that are not items yet.
    uses: BTreeMap<usize, VecDeque<Use>>,
}

impl<'i> Reader<'i> {
    /// Reads a file and the project files that it includes.
    fn read(path: &Path, include: &'i [PathBuf], defining: Defining) -> Result<Unit, AdoptError> {
        let mut reader = Self {
            unit: Unit {
                files: Vec::new(),
                items: Vec::new(),
                namespaces: BTreeSet::new(),
            },
            include,
            seen: Vec::new(),
            defining,
            uses: BTreeMap::new(),
        };
        reader.file(path)?;
        Ok(reader.unit)
    }

    /// Adds the uses of macros before byte `end` as items.
    fn uses_before(&mut self, file: usize, end: usize, around: &[Around]) {
        let Some(waiting) = self.uses.get_mut(&file) else {
            return;
        };
        let count = waiting.iter().take_while(|each| each.at.end <= end).count();
        let found: Vec<Use> = waiting.drain(..count).collect();
        for each in found {
            if each.is_pragma {
                self.push_range(file, each.at, around, Kind::Pragma, Vec::new());
            } else if !each.names.is_empty() {
                self.push_range(file, each.at, around, Kind::Expansion, each.names);
            }
        }
    }

    fn file(&mut self, path: &Path) -> Result<(), AdoptError> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.seen.contains(&real) || self.seen.len() >= MAX_FILES {
            return Ok(());
        }
        self.seen.push(real);
        let mut source = Source::read(path, &self.defining.scopes)?;
        let index = self.unit.files.len();
        let uses = self.defining.uses(&source);
        if !uses.is_empty() {
            source.leave_out(uses.iter().map(|each| each.at.clone()));
            self.uses.insert(index, uses.into());
        }
        let tree = source.tree().clone();
        self.unit.files.push(source);
        self.children(index, tree.root_node(), &[]);
        Ok(())
    }

    fn children(&mut self, file: usize, node: Node<'_>, around: &[Around]) {
        let mut cursor = node.walk();
        let all: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in all {
            self.uses_before(file, child.start_byte(), around);
            self.node(file, child, around);
        }
        self.uses_before(file, node.end_byte(), around);
    }

    fn text(&self, file: usize, node: Node<'_>) -> String {
        self.unit.file(file).text(&node.byte_range()).to_owned()
    }

    fn node(&mut self, file: usize, node: Node<'_>, around: &[Around]) {
        match node.kind() {
            "namespace_definition" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| self.text(file, name)).unwrap_or_default();
                self.unit.namespaces.insert(name.clone());
                let scope = match self.text(file, node).starts_with("inline") {
                    true => Around::Inline(name),
                    false => Around::Namespace(name),
                };
                let inner = [around, &[scope]].concat();
                if let Some(body) = node.child_by_field_name("body") {
                    self.children(file, body, &inner);
                }
            }
            "linkage_specification" => {
                let inner = [around, &[Around::Linkage]].concat();
                match node.child_by_field_name("body") {
                    Some(body) if body.kind() == "declaration_list" => {
                        self.children(file, body, &inner);
                    }
                    Some(body) => self.node(file, body, &inner),
                    None => {}
                }
            }
            "preproc_if" | "preproc_ifdef" => self.condition(file, node, around),
            "preproc_include" => self.includes(file, node, around),
            "comment" | ";" | "{" | "}" | "preproc_error" => {}
            _ if !node.is_named() => {}
            _ => self.item(file, node, around),
        }
    }

    /// Adds a conditional; an include guard is skipped.
    fn condition(&mut self, file: usize, node: Node<'_>, around: &[Around]) {
        let mut cursor = node.walk();
        let all: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let head = all.first().copied();
        let opening = {
            let end = head.map_or(node.end_byte(), |head| head.end_byte());
            let whole = self
                .unit
                .file(file)
                .text(&(node.start_byte()..end))
                .to_owned();
            whole.trim_end().to_owned()
        };
        let guard = all.get(1).is_some_and(|next| {
            next.kind() == "preproc_def"
                && next.child_by_field_name("value").is_none()
                && next
                    .child_by_field_name("name")
                    .is_some_and(|name| guarded(&opening) == Some(&self.text(file, name)))
        });
        let plain = around.to_vec();
        let inner = inside(around, &opening, file, node.start_byte());
        let inner = if guard { &plain } else { &inner };
        for child in all.iter().skip(if guard { 2 } else { 1 }) {
            self.uses_before(file, child.start_byte(), inner);
            match child.kind() {
                "preproc_else" | "preproc_elif" | "preproc_elifdef" => {
                    self.branch(file, *child, around, &opening);
                }
                _ => self.node(file, *child, inner),
            }
        }
        self.uses_before(file, node.end_byte(), inner);
    }

    fn branch(&mut self, file: usize, node: Node<'_>, around: &[Around], before: &str) {
        let mut cursor = node.walk();
        let all: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let (opening, skip) = if node.kind() == "preproc_else" {
            (format!("{before}\n#else"), 0)
        } else {
            let end = all.first().map_or(node.end_byte(), |head| head.end_byte());
            let text = self.unit.file(file).text(&(node.start_byte()..end));
            (format!("{before}\n{}", text.trim_end()), 1)
        };
        let inner = inside(around, &opening, file, node.start_byte());
        for child in all.iter().skip(skip) {
            self.uses_before(file, child.start_byte(), &inner);
            match child.kind() {
                "preproc_else" | "preproc_elif" | "preproc_elifdef" => {
                    self.branch(file, *child, around, &opening);
                }
                _ => self.node(file, *child, &inner),
            }
        }
        self.uses_before(file, node.end_byte(), &inner);
    }

    fn includes(&mut self, file: usize, node: Node<'_>, around: &[Around]) {
        let Some(path) = node.child_by_field_name("path") else {
            return;
        };
        let text = self.text(file, path);
        let quoted = text.starts_with('"');
        let spelled = text.trim_matches(['"', '<', '>', ' ']).to_owned();
        if let Some(found) = self.resolve(file, &spelled, quoted) {
            let header = self.unit.items.len();
            let path = found.display().to_string();
            self.push(file, node, around, Kind::Header, vec![path]);
            if self.file(&found).is_ok() {
                return;
            }
            self.unit.items.truncate(header);
        }
        self.push(file, node, around, Kind::Include, vec![spelled]);
    }

    /// Resolves a project file: next to the including file, in the include folders, for quoted
    /// names in `include` folders above, then in any of the project's folders above.
    fn resolve(&self, file: usize, spelled: &str, quoted: bool) -> Option<PathBuf> {
        let here = self.unit.file(file).path.parent()?.to_owned();
        let mut folders: Vec<PathBuf> = Vec::new();
        if quoted {
            folders.push(here.clone());
        }
        folders.extend(self.include.iter().cloned());
        if quoted {
            for above in here.ancestors().skip(1).take(MAX_ANCESTORS) {
                folders.extend(["", "include", "src"].map(|name| above.join(name)));
            }
            folders.push(here.join("include"));
        }
        let mut paths = folders.into_iter().map(|folder| folder.join(spelled));
        let found = paths.find(|path| path.is_file());
        found.or_else(|| quoted.then(|| in_project(&here, spelled))?)
    }

    fn item(&mut self, file: usize, node: Node<'_>, around: &[Around]) {
        let text = self.text(file, node);
        let (kind, names) = match node.kind() {
            "preproc_def" | "preproc_function_def" => {
                let name = node.child_by_field_name("name");
                (
                    Kind::Macro,
                    name.map(|name| self.text(file, name)).into_iter().collect(),
                )
            }
            "preproc_call" => match directive(&text) {
                Some(found) => found,
                None => return,
            },
            "using_declaration" if text.contains("namespace") => {
                let path = text
                    .trim_end_matches(';')
                    .rsplit(' ')
                    .next()
                    .unwrap_or_default();
                (Kind::Using, vec![path.to_owned()])
            }
            // A word that the parser could not classify, such as a macro before a declaration.
            kind if !kind.starts_with("preproc") && words(&text).len() < 2 => return,
            _ => {
                let source = self.unit.file(file);
                (kind_of(&text, node), super::tree::declared(source, node))
            }
        };
        self.push(file, node, around, kind, names);
    }

    fn push(
        &mut self,
        file: usize,
        node: Node<'_>,
        around: &[Around],
        kind: Kind,
        names: Vec<String>,
    ) {
        self.push_range(file, node.byte_range(), around, kind, names);
    }

    fn push_range(
        &mut self,
        file: usize,
        at: Range<usize>,
        around: &[Around],
        kind: Kind,
        names: Vec<String>,
    ) {
        let node = at.clone();
        let source = self.unit.file(file);
        let at = match kind.is_directive() {
            true => at,
            false => source.head_start(at.start)..at.end,
        };
        let mut all: BTreeSet<String> = BTreeSet::new();
        all.extend(words(source.code(&at)).into_iter().map(str::to_owned));
        // Macros in the conditions around an item must enter the template with it.
        for each in around {
            if let Around::Condition(branch) = each {
                all.extend(words(&branch.opening).into_iter().map(str::to_owned));
            }
        }
        self.unit.items.push(Item {
            file,
            at,
            node,
            kind,
            names,
            words: all,
            around: around.to_vec(),
        });
    }
}

/// Searches sibling folders of all parents up to the project's root.
fn in_project(here: &Path, spelled: &str) -> Option<PathBuf> {
    let root = here
        .ancestors()
        .position(|above| above.join(".git").exists())?;
    let above = here.ancestors().take(root.min(MAX_ANCESTORS) + 1);
    above.into_iter().find_map(|above| {
        let entries = std::fs::read_dir(above).ok()?;
        let mut folders: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        // The file system's order is arbitrary, but the first match must be the same on every machine.
        folders.sort();
        let folders = folders.into_iter().take(MAX_FOLDERS);
        let mut paths = folders.map(|folder| folder.join(spelled));
        paths.find(|path| path.is_file())
    })
}

/// Returns the syntax node of an item.
pub(crate) fn node_of<'u>(unit: &'u Unit, item: &Item) -> Option<(&'u Source, Node<'u>)> {
    let source = unit.files.get(item.file)?;
    let root = source.tree().root_node();
    let node = root.named_descendant_for_byte_range(item.node.start, item.node.end)?;
    Some((source, node))
}

#[cfg(test)]
mod tests;
