//! Chat completions: prompts from files, the model's text, and the answer in it.

use serde_json::{Value, json};
use std::path::Path;
use tuner_evolve::protocol::{MAX_TOKENS, MutationAnswer, MutationRequest};

/// Prompts that are written to the folder if it has none.
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

/// Text and token counts of a completion. A defective completion consumes tokens, too.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) prompt_tokens: u64,
    pub(super) answer_tokens: u64,
    /// Reason why the text is not a valid answer; it may quote the endpoint.
    pub(super) defect: Option<String>,
    finish: Option<String>,
    calls_tool: bool,
}

impl Completion {
    /// Reads a response, a document or a stream of events.
    pub(super) fn read(body: &str, is_stream: bool, content_type: &str) -> Self {
        let mut completion = Self::default();
        let is_complete = match is_stream {
            true => completion.add_events(body),
            false => {
                completion.add_document(body, content_type);
                true
            }
        };
        let text = completion.text.trim().is_empty();
        let found = match completion.finish.as_deref() {
            Some("length") => Some("the answer reached the model's token limit and is cut"),
            Some("content_filter") => Some("the endpoint's filter cut the answer"),
            None if !is_complete => Some("the stream ended before the answer did"),
            _ if text && completion.calls_tool => {
                Some("the model called a tool instead of answering; this endpoint gets no tools")
            }
            _ if text => Some("the response has no text at `choices[0]`"),
            _ => None,
        };
        completion.defect = completion.defect.or(found.map(str::to_owned));
        completion
    }

    fn add_document(&mut self, body: &str, content_type: &str) {
        match serde_json::from_str(body) {
            Ok(document) => self.add(&document, "message"),
            Err(error) => {
                let kind = match content_type.is_empty() {
                    true => "no content type".to_owned(),
                    false => format!("content type {content_type}"),
                };
                self.defect = Some(format!("the response is not JSON ({kind}): {error}"));
            }
        }
    }

    /// Adds all events of a stream; returns whether the last one was the end mark.
    fn add_events(&mut self, body: &str) -> bool {
        let mut data: Vec<&str> = Vec::new();
        // A blank line ends an event; a server may close the stream without one.
        for line in body.lines().chain([""]) {
            if let Some(part) = line.strip_prefix("data:") {
                // Server-sent events: one space after the colon is not part of the data.
                data.push(part.strip_prefix(' ').unwrap_or(part));
            } else if line.is_empty() && !data.is_empty() {
                let event = std::mem::take(&mut data);
                // The end mark of OpenAI's protocol, which is not JSON.
                if event.iter().any(|part| part.trim() == "[DONE]") {
                    return true;
                }
                if let Err(error) = self.add_event(&event) {
                    let why = format!("an event of the stream is not JSON: {error}");
                    self.defect = Some(why);
                    return true;
                }
            }
        }
        false
    }

    /// Adds one event: its lines form one JSON document; some servers send one document per line.
    fn add_event(&mut self, lines: &[&str]) -> Result<(), serde_json::Error> {
        if let Ok(event) = serde_json::from_str(&lines.join("\n")) {
            self.add(&event, "delta");
            return Ok(());
        }
        for line in lines {
            let event: Value = serde_json::from_str(line)?;
            self.add(&event, "delta");
        }
        Ok(())
    }

    fn add(&mut self, value: &Value, part: &str) {
        let message = value.pointer(&format!("/choices/0/{part}"));
        let content = message.and_then(|message| message.get("content"));
        match content {
            Some(Value::String(text)) => self.text.push_str(text),
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                self.text.extend(texts);
            }
            _ => {}
        }
        let calls = message.and_then(|message| message.get("tool_calls"));
        self.calls_tool |= calls.is_some_and(|calls| !calls.is_null());
        let finish = value.pointer("/choices/0/finish_reason");
        if let Some(finish) = finish.and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            let text = error.get("message").unwrap_or(error).as_str();
            let text = text.map_or_else(|| error.to_string(), str::to_owned);
            self.defect = Some(format!("the endpoint reports an error: {text}"));
        }
        let count = |name: &str| {
            let count = value.pointer(&format!("/usage/{name}"))?.as_u64()?;
            // The sum of both counts must remain within the limit of `Usage`.
            Some(count.min(MAX_TOKENS / 2))
        };
        // Only one event of a stream, usually the last, has the token counts.
        self.prompt_tokens = count("prompt_tokens").unwrap_or(self.prompt_tokens);
        self.answer_tokens = count("completion_tokens").unwrap_or(self.answer_tokens);
    }
}

/// Removes the reasoning part of a model's output: drafts in it are not the answer.
fn without_thoughts(text: &str) -> String {
    let mut out = text.to_owned();
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        while let Some(end) = out.find(close) {
            // The opening tag may be part of the prompt.
            let begin = out
                .get(..end)
                .and_then(|before| before.find(open))
                .unwrap_or(0);
            out.replace_range(begin..end + close.len(), "");
        }
        if let Some(begin) = out.find(open) {
            out.truncate(begin);
        }
    }
    out
}

/// Finds the answer in a model's text: a JSON object, SEARCH/REPLACE blocks, or a fenced diff or source.
pub(super) fn answer(text: &str, id: &str) -> Vec<u8> {
    let text = &without_thoughts(text);
    let fenced = |languages: &[&str]| fence(text, languages);
    let json = fenced(&["json"]).unwrap_or(text.trim());
    // First, because the strings of a JSON answer may contain fences and blocks.
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
