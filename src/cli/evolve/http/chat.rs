//! Chat completions: prompts from files, the model's text, and the answer in it.

use serde_json::{Value, json};
use std::path::Path;
use tuner_evolve::protocol::{MutationAnswer, MutationRequest};

/// Prompts that are written to the folder when it has none.
const SYSTEM: &str = include_str!("system.md");
const USER: &str = include_str!("user.md");

/// Prompts of a conversation.
pub(super) struct Prompts {
    system: String,
    user: String,
}

impl Prompts {
    /// Reads `prompts/system.md` and `prompts/user.md` of the folder; writes the defaults where they
    /// are missing, so that they can be edited.
    ///
    /// # Errors
    /// A folder that cannot be written, or a prompt that cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let prompts = folder.join("prompts");
        std::fs::create_dir_all(&prompts)
            .map_err(|error| format!("{}: cannot be created: {error}", prompts.display()))?;
        let open = |name: &str, default: &str| -> Result<String, String> {
            let path = prompts.join(name);
            let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
            if !path.exists() {
                crate::atomic::write(&path, default.as_bytes()).map_err(wrong)?;
            }
            tuner_core::files::read_text(&path, 1 << 20).map_err(wrong)
        };
        let prompts = Self {
            system: open("system.md", SYSTEM)?,
            user: open("user.md", USER)?,
        };
        match prompts.user.contains("{request}") {
            true => Ok(prompts),
            false => Err(
                "prompts/user.md: `{request}` is missing; the request is put in its place"
                    .to_owned(),
            ),
        }
    }

    /// Returns the messages of a request.
    pub(super) fn messages(&self, request: &MutationRequest) -> Value {
        let request = serde_json::to_string_pretty(request).unwrap_or_default();
        json!([
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.user.replace("{request}", &request)},
        ])
    }
}

/// Text and token counts of a completion.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) prompt_tokens: u64,
    pub(super) answer_tokens: u64,
}

impl Completion {
    /// Reads a response, a document or a stream of events.
    ///
    /// # Errors
    /// A response without text.
    pub(super) fn read(body: &str, is_stream: bool) -> Result<Self, String> {
        let mut completion = Self::default();
        if is_stream {
            for line in body.lines() {
                let Some(data) = line.strip_prefix("data:").map(str::trim) else {
                    continue;
                };
                if data == "[DONE]" {
                    break;
                }
                let event: Value = serde_json::from_str(data)
                    .map_err(|error| format!("an event of the stream is not JSON: {error}"))?;
                completion.add(&event, "delta");
            }
        } else {
            let document: Value = serde_json::from_str(body)
                .map_err(|error| format!("the response is not JSON: {error}"))?;
            completion.add(&document, "message");
        }
        match completion.text.trim().is_empty() {
            true => Err("the response has no text at `choices[0]`".to_owned()),
            false => Ok(completion),
        }
    }

    fn add(&mut self, value: &Value, part: &str) {
        let content = value.pointer(&format!("/choices/0/{part}/content"));
        self.text
            .push_str(content.and_then(Value::as_str).unwrap_or_default());
        let count = |name: &str| {
            value
                .pointer(&format!("/usage/{name}"))
                .and_then(Value::as_u64)
        };
        self.prompt_tokens = count("prompt_tokens").unwrap_or(self.prompt_tokens);
        self.answer_tokens = count("completion_tokens").unwrap_or(self.answer_tokens);
    }
}

/// Finds the answer in a model's text: a JSON object, SEARCH/REPLACE blocks, or a fenced diff or source.
pub(super) fn answer(text: &str, id: &str) -> Vec<u8> {
    let fenced = |languages: &[&str]| fence(text, languages);
    let json = fenced(&["json"]).unwrap_or(text.trim());
    if let Ok(Value::Object(mut object)) = serde_json::from_str(json) {
        object.entry("id").or_insert_with(|| json!(id));
        return serde_json::to_vec(&object).unwrap_or_default();
    }
    let note = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("```"));
    let mut answer = MutationAnswer {
        id: id.to_owned(),
        note: note.unwrap_or_default().to_owned(),
        ..MutationAnswer::default()
    };
    if let Some(blocks) = blocks(text) {
        answer.blocks = Some(blocks);
    } else if let Some(diff) = fenced(&["diff", "patch"]) {
        answer.diff = Some(diff.to_owned());
    } else {
        answer.source = fenced(&["cuda", "cpp", "c++", "c", "cu", ""]).map(str::to_owned);
    }
    serde_json::to_vec(&answer).unwrap_or_default()
}

/// Joins all SEARCH/REPLACE blocks of a text.
fn blocks(text: &str) -> Option<String> {
    let mut joined = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside |= line.trim_end() == "<<<<<<< SEARCH";
        if inside {
            joined.push_str(line);
            joined.push('\n');
        }
        inside &= line.trim_end() != ">>>>>>> REPLACE";
    }
    (!joined.is_empty()).then_some(joined)
}

/// Returns the content of the first fenced block in one of the languages.
fn fence<'a>(text: &'a str, languages: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("```") {
        let (language, body) = after.split_once('\n')?;
        let (content, tail) = body.split_once("```")?;
        if languages.contains(&language.trim()) {
            return Some(content);
        }
        rest = tail;
    }
    None
}
