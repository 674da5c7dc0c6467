//! YAML (and JSON, its subset) as a tree with the position of every node.

use crate::Diagnostic;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::budget::BudgetBreach;
use serde_yaml::{Budget, DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, Spanned};
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

/// A node and its source bytes.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    start: u32,
    end: u32,
}

/// Kinds of nodes in the YAML 1.2 core schema.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number that only fits in 64 bits unsigned.
    Large(u64),
    Float(f64),
    Text(Box<str>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Kind {
    /// Describes the node for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Int(value) => format!("the integer {value}"),
            Self::Large(value) => format!("the integer {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Text(value) => format!("the text \"{value}\""),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// Maximum nesting, so that no input can exhaust the stack: unoptimised, a level uses up to 40 KiB of the 2
/// MiB of a thread. Search spaces nest six levels.
const MAX_DEPTH: usize = 24;
/// Maximum number of events that aliases may repeat in a file.
const MAX_REPEATED: usize = 1 << 18;

impl Node {
    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Resolves scalars by the core schema, sets the ends of collections, and rejects invalid keys.
    fn settle(&mut self, source: &str) -> Result<(), Diagnostic> {
        let span = self.span();
        match &mut self.kind {
            Kind::Bool(_) | Kind::Int(_) | Kind::Large(_) | Kind::Float(_) => {
                let text = source.get(span.clone()).unwrap_or_default();
                // After a tag such as `!!int` the value may be in quotes.
                if !text.starts_with(['"', '\'']) {
                    self.kind = resolve(text).map_err(|message| {
                        Diagnostic::new(message, span)
                            .help("write a number in range, or put it in quotes as text")
                    })?;
                }
            }
            Kind::Null | Kind::Text(_) => {}
            Kind::List(items) => {
                for item in &mut *items {
                    item.settle(source)?;
                }
                self.end = closed(span, items.last(), source);
            }
            Kind::Map(entries) => {
                let mut keys = HashSet::with_capacity(entries.len());
                for (key, value) in &mut *entries {
                    key.settle(source)?;
                    value.settle(source)?;
                    let name = match &key.kind {
                        Kind::List(_) | Kind::Map(_) => {
                            let error = Diagnostic::new("a key must be a single word", key.span());
                            return Err(error.help("put text with brackets in quotes"));
                        }
                        Kind::Text(text) => &**text,
                        _ => &source[key.span()],
                    };
                    if !keys.insert(name.to_owned()) {
                        let message = format!("the key `{name}` is given twice");
                        return Err(
                            Diagnostic::new(message, key.span()).help("remove one of the two")
                        );
                    }
                }
                self.end = closed(span, entries.last().map(|(_, value)| value), source);
            }
        }
        Ok(())
    }
}

/// Returns the end of a collection: after its last element and, in a flow collection, its bracket.
fn closed(span: Range<usize>, last: Option<&Node>, source: &str) -> u32 {
    let open = source.get(span.start..).unwrap_or_default();
    let bracket = match open.as_bytes().first() {
        Some(b'[') => ']',
        Some(b'{') => '}',
        // An alias ends with its name: its elements are elsewhere in the file.
        Some(b'*') => return span.end as u32,
        _ => '\0',
    };
    let first = span.start + usize::from(bracket != '\0');
    let end = last.map_or(first, |last| last.span().end.max(first));
    let rest = source.get(end..).unwrap_or_default();
    let gap = |character: char| character.is_whitespace() || character == ',';
    let behind = rest.trim_start_matches(gap);
    if behind.starts_with(bracket) {
        (source.len() - behind.len() + 1) as u32
    } else {
        end as u32
    }
}

/// Reads the single document of a text.
pub(super) fn read(source: &str) -> Result<Node, Diagnostic> {
    if u32::try_from(source.len()).is_err() {
        return Err(Diagnostic::of_file("the file is larger than 4 GiB"));
    }
    let mut node: Node = serde_yaml::from_str_with_options(source, options())
        .map_err(|error| diagnostic(&error, source))?;
    node.settle(source)?;
    if matches!(node.kind, Kind::Null) {
        return Err(Diagnostic::of_file("the file is empty"));
    }
    Ok(node)
}

fn options() -> serde_yaml::Options {
    let mut budget = Budget::default();
    budget.max_depth = MAX_DEPTH;
    // The default of a million events would refuse long lists of values.
    budget.max_events = usize::MAX;
    budget.max_nodes = usize::MAX;
    budget.max_total_scalar_bytes = usize::MAX;
    let mut options = serde_yaml::Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MAX_REPEATED;
    // `settle` reports duplicates with their position, and the readers reject `<<` as an unknown key.
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    options.merge_keys = MergeKeyPolicy::AsOrdinary;
    // In YAML 1.1 `no` and `on` are booleans; in the core schema of 1.2 they are text.
    options.strict_booleans = true;
    options.reject_unsupported_tags = true;
    options.underscored_numbers_as_strings = true;
    options.with_snippet = false;
    options
}

/// Converts a YAML error and adds a suggestion.
fn diagnostic(error: &Error, source: &str) -> Diagnostic {
    let place = error.locations().map(|places| places.reference_location);
    let at = place.map_or(0..1, |place| bytes(place, source));
    let (message, help) = match error.without_snippet() {
        Error::AliasError {
            error, locations, ..
        } => {
            let at = bytes(locations.reference_location, source);
            return Diagnostic {
                at: Some(at),
                ..diagnostic(error, source)
            };
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => (
            "an alias cannot stand inside what it repeats".to_owned(),
            "write the value out",
        ),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => ("nested too deeply".to_owned(), "nest less deeply"),
        Error::AliasReplayLimitExceeded { .. } | Error::Budget { .. } => (
            "aliases repeat too much of the file".to_owned(),
            "write the values out",
        ),
        Error::MultipleDocuments { .. } => {
            let mark = source.get(..at.end).and_then(|text| text.rfind("---"));
            let at = mark.map_or(at, |mark| mark..mark + 3);
            let error = Diagnostic::new("a second document begins here", at);
            return error.help("keep one document a file");
        }
        Error::UnsupportedTag { .. } => {
            ("this tag has no meaning here".to_owned(), "remove the `!…`")
        }
        Error::NonFiniteFloat { value, .. } => (
            resolve(value).err().unwrap_or_else(|| error.to_string()),
            "write a number in range, or put it in quotes as text",
        ),
        _ => {
            let text = error.to_string();
            let message = text.split(" at line ").next().unwrap_or(&text);
            let help = match message {
                "recursion limit exceeded" => "nest less deeply",
                _ if message.contains("tab") => "indent with spaces, not tabs",
                _ => "this is not valid YAML: check indentation, quotes and brackets here",
            };
            (message.to_owned(), help)
        }
    };
    Diagnostic::new(message, at).help(help)
}

/// Returns the bytes of a position; the parser's own errors have only a line and a column.
fn bytes(place: Location, source: &str) -> Range<usize> {
    let span = place.span();
    if let (Some(start), Some(length)) = (span.byte_offset(), span.byte_len()) {
        return start as usize..(start + length.max(1)) as usize;
    }
    let lines = source.split_inclusive('\n');
    let before = lines.take((place.line() as usize).saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    let column = (place.column() as usize).saturating_sub(1);
    let characters = source[start..].char_indices();
    let at = characters.map(|(at, _)| at).nth(column);
    let at = start + at.unwrap_or(source.len() - start);
    at..at + 1
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<Kind>::deserialize(deserializer)?;
        // A repeated scalar has the position of its text; a repeated collection has that of its alias.
        let place = match read.value {
            Kind::List(_) | Kind::Map(_) => read.referenced,
            _ => read.defined,
        };
        let start = place.span().byte_offset().unwrap_or(0) as u32;
        Ok(Self {
            kind: read.value,
            start,
            end: start + place.span().byte_len().unwrap_or(0) as u32,
        })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Large(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.into()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Kind, E> {
        Ok(Kind::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Kind::Map(entries))
    }
}

/// Resolves an unquoted scalar by the core schema.
fn resolve(text: &str) -> Result<Kind, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is not a finite number"));
    }
    let large = || format!("{text} does not fit in 64 bits");
    let radix = |digits: &str, radix: u32| {
        let valid = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        valid.then(|| u64::from_str_radix(digits, radix))
    };
    let positive = |number: u64| i64::try_from(number).map_or(Kind::Large(number), Kind::Int);
    let based = match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0o") => radix(&text[2..], 8),
        _ => None,
    };
    if let Some(number) = based {
        return number.map(positive).map_err(|_| large());
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let signed = text.parse().map(Kind::Int);
        return signed.or_else(|_| text.parse().map(positive).map_err(|_| large()));
    }
    let begins = unsigned.starts_with(|c: char| c.is_ascii_digit())
        || (unsigned.starts_with('.') && unsigned[1..].starts_with(|c: char| c.is_ascii_digit()));
    let float =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if begins
        && unsigned.bytes().all(float)
        && let Ok(number) = text.parse::<f64>()
    {
        return if number.is_finite() {
            Ok(Kind::Float(number))
        } else {
            Err(format!("{text} is larger than the largest float"))
        };
    }
    Ok(Kind::Text(text.into()))
}
