//! YAML (and JSON, which is YAML) as a tree that knows the place of everything in it.

use crate::Diagnostic;
use granit_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A node and the bytes it stands at.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    start: u32,
    end: u32,
}

/// What a node is, by the YAML 1.2 core schema.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Kind {
    /// What it is, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Int(value) => format!("the integer {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Text(value) => format!("the text \"{value}\""),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// Deeper nesting is refused, so that no input can exhaust the stack.
const DEEPEST: usize = 64;
/// Aliases may repeat parts of the file up to this many nodes in all.
const MAX_NODES: usize = 1 << 20;

impl Node {
    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn size(&self) -> usize {
        match &self.kind {
            Kind::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Kind::Map(entries) => {
                let each = |(key, value): &(Self, Self)| key.size() + value.size();
                1 + entries.iter().map(each).sum::<usize>()
            }
            _ => 1,
        }
    }
}

/// Reads the only document of a text.
pub(super) fn read(source: &str) -> Result<Node, Diagnostic> {
    if u32::try_from(source.len()).is_err() {
        return Err(Diagnostic::of_file("the file is larger than 4 GiB"));
    }
    let mut reader = Reader {
        source,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        document: None,
    };
    for event in Parser::new_from_str(source) {
        match event {
            Ok((event, span)) => reader.event(event, span)?,
            Err(error) => {
                let at = byte_of(source, error.marker().index());
                let message = error.info().to_owned();
                let help = match &*message {
                    "recursion limit exceeded" => "nest less deeply",
                    _ if message.contains("tab") => "indent with spaces, not tabs",
                    _ => "this is no valid YAML: check indentation, quotes and brackets here",
                };
                return Err(Diagnostic::new(message, at..at + 1).help(help));
            }
        }
    }
    reader
        .document
        .ok_or_else(|| Diagnostic::of_file("the file is empty"))
}

fn byte_of(source: &str, characters: usize) -> usize {
    source
        .char_indices()
        .nth(characters)
        .map_or(source.len(), |(at, _)| at)
}

struct Open {
    node: Node,
    /// The key that waits for its value, in a mapping.
    key: Option<Node>,
    keys: HashSet<String>,
    anchor: usize,
}

struct Reader<'s> {
    source: &'s str,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    document: Option<Node>,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        let bytes = span
            .byte_range()
            .unwrap_or_else(|| byte_of(self.source, span.start.index())..self.source.len());
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let forced = tag.as_ref().and_then(|tag| tag.core_suffix());
                if tag.is_some() && !matches!(forced, Some("str" | "int" | "float" | "bool")) {
                    return Err(Diagnostic::new("this tag has no meaning here", bytes)
                        .help("remove the `!…`"));
                }
                let plain = style == ScalarStyle::Plain && forced != Some("str");
                let kind = if plain {
                    resolve(&text).map_err(|message| {
                        Diagnostic::new(message, bytes.clone())
                            .help("write a number in range, or put it in quotes as text")
                    })?
                } else {
                    Kind::Text(text.into())
                };
                self.place(node(kind, bytes), anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.enter(Kind::List(Vec::new()), bytes, anchor),
            Event::MappingStart(_, anchor, _) => self.enter(Kind::Map(Vec::new()), bytes, anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut closed) = self.open.pop() else {
                    return Ok(());
                };
                closed.node.end = closed.node.end.max(bytes.end as u32);
                self.place(closed.node, closed.anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => {
                    self.nodes += node.size();
                    if self.nodes > MAX_NODES {
                        return Err(
                            Diagnostic::new("aliases repeat too much of the file", bytes)
                                .help("write the values out"),
                        );
                    }
                    self.place(node, 0)
                }
                None => {
                    let message = "an alias cannot stand inside what it repeats";
                    Err(Diagnostic::new(message, bytes).help("write the value out"))
                }
            },
            Event::DocumentStart(..) if self.document.is_some() => {
                Err(Diagnostic::new("a second document begins here", bytes)
                    .help("keep one document a file"))
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, kind: Kind, bytes: Range<usize>, anchor: usize) -> Result<(), Diagnostic> {
        if self.open.len() == DEEPEST {
            return Err(Diagnostic::new("nested too deeply", bytes).help("nest less deeply"));
        }
        self.open.push(Open {
            node: node(kind, bytes),
            key: None,
            keys: HashSet::new(),
            anchor,
        });
        Ok(())
    }

    fn place(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.document = Some(node);
            return Ok(());
        };
        match &mut parent.node.kind {
            Kind::List(items) => items.push(node),
            Kind::Map(entries) => match parent.key.take() {
                None => parent.key = Some(node),
                Some(key) => {
                    let name = match &key.kind {
                        Kind::List(_) | Kind::Map(_) => {
                            let error = Diagnostic::new("a key must be a single word", key.span());
                            return Err(error.help("put text with brackets in quotes"));
                        }
                        Kind::Text(text) => text.to_string(),
                        _ => self.source[key.span()].to_owned(),
                    };
                    if !parent.keys.insert(name.clone()) {
                        return Err(Diagnostic::new(
                            format!("the key `{name}` is given twice"),
                            key.span(),
                        )
                        .help("remove one of the two"));
                    }
                    entries.push((key, node));
                }
            },
            _ => {}
        }
        Ok(())
    }
}

fn node(kind: Kind, bytes: Range<usize>) -> Node {
    Node {
        kind,
        start: bytes.start as u32,
        end: bytes.end as u32,
    }
}

/// The core schema's meaning of an unquoted scalar.
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
        valid.then(|| i64::from_str_radix(digits, radix))
    };
    let based = match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0o") => radix(&text[2..], 8),
        _ => None,
    };
    if let Some(number) = based {
        return number.map(Kind::Int).map_err(|_| large());
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Kind::Int).map_err(|_| large());
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
