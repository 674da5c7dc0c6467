//! Library headers that a template includes first: the common beginning of all its candidates.
//!
//! The parameter block precedes the template's text, so that candidates have no common prefix. If no file
//! of these libraries mentions a parameter, they have the same meaning before the block, and NVRTC can
//! parse them once for many candidates ([`super::precompiled`]).

use super::host_headers;
use super::render::Source;
use super::request::Request;
use super::template::{Header, definitions, included_macros, included_names};
use cuda_source::{blanked, is_word};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use tuner_core::panics::lock;
use tuner_core::units::ContentHash;

/// Number of recent compiles among which the same prelude must occur. A prelude that never recurs, for
/// example with options that differ in each candidate, is not precompiled.
const RECENT_COMPILES: usize = 4;
/// Maximum number of preludes whose words are cached.
const MAX_CACHED_PRELUDES: usize = 64;

/// Words of a library's files; `None` if some of the files are not the library's.
type Words = Option<Arc<BTreeSet<String>>>;

/// Preludes of recent compiles. Shared between threads by reference.
#[derive(Debug, Default)]
pub(super) struct Preludes {
    recent: Mutex<VecDeque<ContentHash>>,
    words: Mutex<BTreeMap<ContentHash, Words>>,
}

impl Preludes {
    /// Returns the common `#include` lines at the beginning of all candidates of a source, if a recent
    /// compile had them under the same options; empty otherwise. `own` are the folders of CUDA's headers,
    /// the last ones of the request.
    pub(super) fn of(&self, source: &Source, request: &Request, own: &[PathBuf]) -> String {
        let (names, before_block) = leading(source);
        let resolver = Resolver {
            folders: &request.folders,
            own,
            headers: &request.headers,
        };
        let names: Vec<String> = names
            .into_iter()
            .take_while(|name| resolver.library(name, None).is_some())
            .collect();
        if names.is_empty() {
            return String::new();
        }
        let mut text = String::new();
        for name in &names {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "#include <{name}>");
        }
        if !self.returns(&text, request) {
            return String::new();
        }
        let is_free = |words: &BTreeSet<String>| {
            let mut macros = source.macros();
            before_block || macros.all(|name| !words.contains(name))
        };
        match self.words(&text, &resolver) {
            Some(words) if is_free(&words) => text,
            _ => String::new(),
        }
    }

    /// Reports whether a recent compile had this prelude, and records this one.
    fn returns(&self, text: &str, request: &Request) -> bool {
        let key = request.prelude_key(text);
        let mut recent = lock(&self.recent);
        let known = recent.contains(&key);
        recent.push_front(key);
        recent.truncate(RECENT_COMPILES);
        known
    }

    fn words(&self, text: &str, resolver: &Resolver<'_>) -> Words {
        let spelled = resolver
            .headers
            .iter()
            .map(|header| header.spelled.as_str());
        let folders = resolver.folders.iter().map(|folder| folder.as_os_str());
        let key = ContentHash::from_parts(
            std::iter::once(text.as_bytes())
                .chain(spelled.map(str::as_bytes))
                .chain(folders.map(|folder| folder.as_encoded_bytes())),
        );
        let known = lock(&self.words).get(&key).cloned();
        known.unwrap_or_else(|| {
            let words = resolver.words(text).map(Arc::new);
            let mut all = lock(&self.words);
            if all.len() >= MAX_CACHED_PRELUDES {
                all.clear();
            }
            all.insert(key, words.clone());
            words
        })
    }
}

/// Returns the names that a source includes before anything else, and whether the parameter block follows
/// them.
fn leading(source: &Source) -> (Vec<String>, bool) {
    let first = first_includes(&source.text);
    if !first.is_empty() {
        return (first, true);
    }
    (first_includes(source.template_text()), false)
}

/// Returns the names in the `#include` directives before the first other code.
fn first_includes(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in blanked(text, false).lines() {
        let line = line.trim();
        if line.is_empty() || line == "#pragma once" {
            continue;
        }
        match included_names(line).pop() {
            Some((name, _)) => names.push(name),
            None => break,
        }
    }
    names
}

/// File that an `#include` of a library resolves to.
enum LibraryFile {
    /// Header from memory.
    Memory(Header),
    /// File in a folder of CUDA's headers.
    Disk(PathBuf),
}

/// Search for included files by NVRTC's rules.
struct Resolver<'a> {
    /// All folders, in order.
    folders: &'a [PathBuf],
    /// Those of CUDA's headers.
    own: &'a [PathBuf],
    /// The template's files.
    headers: &'a [Header],
}

impl Resolver<'_> {
    /// Returns the file of a name if it is the library's; `beside` is the folder of the including
    /// file.
    fn library(&self, name: &str, beside: Option<&Path>) -> Option<LibraryFile> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let is_plain = Path::new(name).components().all(plain);
        if self.headers.iter().any(|header| header.spelled == name) {
            return None;
        }
        if let Some(file) = beside.map(|folder| folder.join(name))
            && file.is_file()
        {
            return Some(LibraryFile::Disk(file));
        }
        if let Some(header) = host_headers::named(name) {
            return Some(LibraryFile::Memory(header));
        }
        let mut folders = self.folders.iter();
        let folder = folders.find(|folder| folder.join(name).is_file())?;
        (is_plain && self.own.contains(folder)).then(|| LibraryFile::Disk(folder.join(name)))
    }

    /// Returns the words of all files that a text includes, transitively and under any condition. `None` if
    /// one of them is not part of the library or cannot be determined, or if all of them are in memory and
    /// thus short.
    fn words(&self, text: &str) -> Option<BTreeSet<String>> {
        let mut words = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut texts = vec![(text.to_owned(), None::<PathBuf>)];
        let mut is_worth_it = false;
        while let Some((text, folder)) = texts.pop() {
            let is_known = |word: &str| word.is_empty() || words.contains(word);
            let code = blanked(&text, false);
            let found = code.split(|c: char| !c.is_ascii() || !is_word(c as u8));
            let new: Vec<&str> = found.filter(|word| !is_known(word)).collect();
            words.extend(new.into_iter().map(str::to_owned));
            for (name, quoted) in included(&code)? {
                let beside = folder.as_deref().filter(|_| quoted);
                match self.library(&name, beside) {
                    Some(LibraryFile::Memory(header)) if seen.insert(PathBuf::from(&name)) => {
                        texts.push((header.text, None));
                    }
                    // A file may have many names: `a/../b.h` in the headers of a folder.
                    Some(LibraryFile::Disk(path)) if seen.insert(path.canonicalize().ok()?) => {
                        is_worth_it = true;
                        let text = std::fs::read_to_string(&path).ok()?;
                        texts.push((text, path.parent().map(Path::to_owned)));
                    }
                    Some(_) => {}
                    // Not found: an include for other compilers.
                    None if !self.is_there(&name) => {}
                    None => return None,
                }
            }
        }
        is_worth_it.then_some(words)
    }

    /// Reports whether a name resolves to any file.
    fn is_there(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.spelled == name)
            || self.folders.iter().any(|folder| folder.join(name).exists())
    }
}

/// Returns the names that a text includes; `None` if a directive has an undeterminable name, such as
/// `#include_next` or a macro that the text does not define.
fn included(code: &str) -> Option<Vec<(String, bool)>> {
    let mut names = included_names(code);
    let macros = included_macros(code);
    let is_include = |line: &&str| {
        let directive = line.trim_start().strip_prefix('#');
        directive.is_some_and(|name| name.trim_start().starts_with("include"))
    };
    if code.lines().filter(is_include).count() != names.len() + macros.len() {
        return None;
    }
    for name in macros {
        let values = definitions(code, &name);
        let named = values
            .iter()
            .flat_map(|value| included_names(&format!("#include {value}")));
        let before = names.len();
        names.extend(named);
        if names.len() < before + values.len().max(1) {
            return None;
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests;
