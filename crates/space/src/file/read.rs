//! Splitting of a file's tree into sections; collects all syntax errors.

use super::de::{Spanned, from_node};
use super::node::{Kind, Node};
use super::schema::Ordered;
use crate::Diagnostic;
use crate::expr::nearest_or_all;
use serde::Deserialize;

/// Sections whose entries may refer to earlier ones, so that checking takes more than linear time. The file
/// size alone limits the others.
const LIMITED_SECTIONS: [&str; 5] = [
    "derived",
    "constraints",
    "arguments",
    "variables",
    "launches",
];
/// Maximum number of entries of such a section.
const MAX_ENTRIES: usize = 10_000;

/// Declares a file's sections: the type, its keys, and a reader that collects every error. Each key is
/// followed by the functions of [`Sections`] that find and read it.
macro_rules! sections {
    ($(#[$attribute:meta])* $name:ident {
        $($(#[$of_field:meta])* $field:ident: $ty:ty = $find:ident $read:ident,)*
    }) => {
        $(#[$attribute])*
        pub(super) struct $name {
            $($(#[$of_field])* pub(super) $field: $ty,)*
        }

        impl $name {
            /// Keys in the order of the format.
            pub(super) const KEYS: &[&str] = &[$(stringify!($field)),*];

            /// Reads the sections of a tree.
            pub(super) fn read(node: &Node, text: &str) -> Result<Self, Vec<Diagnostic>> {
                let mut sections = Sections::new(node, text, Self::KEYS)?;
                $(let $field = sections.$find(stringify!($field), Sections::$read);)*
                sections.version();
                let errors = std::mem::take(&mut sections.errors);
                if errors.is_empty()
                    && let ($(Some($field),)*) = ($($field,)*)
                {
                    return Ok(Self { $($field,)* });
                }
                Err(errors)
            }
        }
    };
}
pub(super) use sections;

/// Reports whether the tree is a bare space: it has parameters, and no key of a kernel.
pub(super) fn is_bare(node: &Node) -> bool {
    has_any(node, &["parameters"]) && !is_kernel(node)
}

/// Reports whether the tree has a key of a kernel.
pub(super) fn is_kernel(node: &Node) -> bool {
    has_any(node, &["kernel", "source", "launches", "arguments"])
}

fn has_any(node: &Node, keys: &[&str]) -> bool {
    let Kind::Map(entries) = &node.kind else {
        return false;
    };
    let wanted = |key: &Node| keys.iter().any(|wanted| is_key(key, wanted));
    entries.iter().any(|(key, _)| wanted(key))
}

fn is_key(node: &Node, wanted: &str) -> bool {
    matches!(&node.kind, Kind::Text(text) if **text == *wanted)
}

pub(super) struct Sections<'n> {
    entries: &'n [(Node, Node)],
    source: &'n str,
    pub(super) errors: Vec<Diagnostic>,
}

impl<'n> Sections<'n> {
    pub(super) fn new(
        node: &'n Node,
        source: &'n str,
        keys: &[&str],
    ) -> Result<Self, Vec<Diagnostic>> {
        let entries = match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Null => return Err(vec![Diagnostic::of_file("the file is empty")]),
            _ => {
                let error = Diagnostic::new("expected a mapping of keys to values", node.span());
                return Err(vec![error.help("begin with `version: 1`")]);
            }
        };
        let mut errors = Vec::new();
        for (key, _) in entries {
            if !keys.iter().any(|known| is_key(key, known)) {
                let name = &source[key.span()];
                let error = Diagnostic::new(format!("unknown key `{name}`"), key.span());
                errors.push(error.help(nearest_or_all(name, keys, "the keys here are")));
            }
        }
        Ok(Self {
            entries,
            source,
            errors,
        })
    }

    /// Returns the node of a key; an empty value counts as missing unless the key is required.
    fn find(&mut self, key: &str, required: bool) -> Option<&'n Node> {
        let entries = self.entries;
        let found = entries.iter().find(|(known, _)| is_key(known, key));
        match found {
            Some((at, value)) if matches!(value.kind, Kind::Null) => {
                if required {
                    let error = Diagnostic::new(format!("`{key}` is empty"), at.span());
                    self.errors
                        .push(error.help("write its value after it or below it"));
                }
                None
            }
            Some((_, value)) => Some(value),
            None => {
                if required {
                    self.errors.push(
                        Diagnostic::new(format!("the key `{key}` is missing"), 0..1)
                            .help(format!("add `{key}: …`")),
                    );
                }
                None
            }
        }
    }

    pub(super) fn value<T: Deserialize<'n>>(&mut self, _key: &str, node: &'n Node) -> Option<T> {
        from_node(node, self.source)
            .map_err(|error| self.errors.push(error))
            .ok()
    }

    pub(super) fn required<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str, &'n Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.find(key, true)?;
        read(self, key, node)
    }

    /// Reads an optional key; `None` only for an invalid value.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str, &'n Node) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.find(key, false) {
            None => Some(None),
            Some(node) => read(self, key, node).map(Some),
        }
    }

    fn too_many(&mut self, key: &str, node: &Node, entries: usize) -> bool {
        let many = entries > MAX_ENTRIES && LIMITED_SECTIONS.contains(&key);
        if many {
            let start = node.span().start;
            let message = format!("`{key}` has {entries} entries");
            let error = Diagnostic::new(message, start..start + 1);
            self.errors
                .push(error.help(format!("this section has at most {MAX_ENTRIES}")));
        }
        many
    }

    /// Reads a list; an invalid element does not affect the others.
    pub(super) fn list<T: Deserialize<'n>>(&mut self, key: &str, node: &'n Node) -> Option<Vec<T>> {
        match &node.kind {
            Kind::List(items) if self.too_many(key, node, items.len()) => None,
            Kind::List(items) => Some(
                items
                    .iter()
                    .filter_map(|item| self.value(key, item))
                    .collect(),
            ),
            _ => {
                let error = Diagnostic::new(format!("`{key}` must be a list"), node.span());
                self.errors
                    .push(error.help("begin every element with `- `"));
                None
            }
        }
    }

    /// Reads a mapping from names; an invalid entry does not affect the others.
    pub(super) fn map<T: Deserialize<'n>>(
        &mut self,
        key: &str,
        node: &'n Node,
    ) -> Option<Ordered<T>> {
        let Kind::Map(entries) = &node.kind else {
            let error =
                Diagnostic::new(format!("`{key}` must be a mapping from names"), node.span());
            self.errors
                .push(error.help("write each entry as `NAME: …`"));
            return None;
        };
        if self.too_many(key, node, entries.len()) {
            return None;
        }
        let mut pairs = Vec::new();
        for (name, value) in entries {
            let name = Spanned {
                value: match &name.kind {
                    Kind::Text(text) => text.to_string(),
                    _ => self.source[name.span()].to_owned(),
                },
                at: name.span(),
            };
            if let Some(value) = self.value(key, value) {
                pairs.push((name, value));
            }
        }
        Some(Ordered(pairs))
    }

    /// Reads a mapping of at least one entry, as [`map`](Self::map) does.
    pub(super) fn filled_map<T: Deserialize<'n>>(
        &mut self,
        key: &str,
        node: &'n Node,
    ) -> Option<Ordered<T>> {
        if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
            let error = Diagnostic::new(format!("`{key}` is empty"), node.span());
            let one = key.trim_end_matches('s');
            self.errors
                .push(error.help(format!("name at least one {one}")));
        }
        self.map(key, node)
    }

    pub(super) fn version(&mut self) {
        let Some(node) = self.entries.iter().find(|(key, _)| is_key(key, "version")) else {
            return;
        };
        // Any other value is a type error, which reading the key reports.
        if let Kind::Int(version) = node.1.kind
            && version >= 0
            && version != 1
        {
            let message = format!("version {version} is not known to this program");
            let error = Diagnostic::new(message, node.1.span());
            self.errors.push(error.help("write `version: 1`"));
        }
    }
}

#[cfg(test)]
mod tests;
