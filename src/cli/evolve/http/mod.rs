//! `http`: an OpenAI-compatible chat endpoint, with retries, limits and transcripts without keys.

mod chat;
mod client;
mod endpoint;

use super::mutator::{Mutator, MutatorError, Reply};
use chat::{Completion, Prompts};
use client::{ClientError, post};
use endpoint::Endpoint;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tuner_core::escape;
use tuner_engine::threads::start_local_runtime;
use tuner_evolve::protocol::{MutationRequest, Usage};

/// Attempts of a request.
const MAX_ATTEMPTS: u32 = 5;
/// Maximum wait before an attempt.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Polling interval for a stop request while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Endpoint with its limits and the cost so far.
pub(super) struct HttpMutator {
    endpoint: Endpoint,
    prompts: Prompts,
    transcripts: PathBuf,
    cost_limit: Option<f64>,
    spent: f64,
    last_request: Option<Instant>,
    /// Transcripts so far, for their names.
    count: u32,
}

impl HttpMutator {
    /// Reads the endpoint from the environment and the prompts from the folder.
    ///
    /// # Errors
    /// A variable, a price or a prompt that is missing.
    pub(super) fn from_environment(folder: &Path, cost_limit: Option<f64>) -> Result<Self, String> {
        let endpoint = Endpoint::from_variables(|name| std::env::var(name).ok())?;
        if cost_limit.is_some() && endpoint.prices.is_none() {
            return Err(
                "--cost-limit: set TUNER_LLM_PRICES to the prices of a million tokens of request and answer, \
                 such as 2.5,10"
                    .to_owned(),
            );
        }
        let transcripts = folder.join("transcripts");
        std::fs::create_dir_all(&transcripts)
            .map_err(|error| format!("{}: cannot be created: {error}", transcripts.display()))?;
        Ok(Self {
            endpoint,
            prompts: Prompts::open(folder)?,
            transcripts,
            cost_limit,
            spent: 0.0,
            last_request: None,
            count: 0,
        })
    }

    /// Waits for the rate limit.
    fn keep_rate(
        &mut self,
        deadline: Instant,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), MutatorError> {
        if let (Some(rpm), Some(last)) = (self.endpoint.requests_per_minute, self.last_request) {
            let interval = Duration::from_secs(60) / rpm;
            pause(interval.saturating_sub(last.elapsed()), deadline, stopped)?;
        }
        self.last_request = Some(Instant::now());
        Ok(())
    }

    /// Sends a body until there is a response for which a retry is useless.
    fn send(
        &mut self,
        body: &[u8],
        deadline: Instant,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<client::Reply, MutatorError> {
        let mut last = String::new();
        for attempt in 0..MAX_ATTEMPTS {
            self.keep_rate(deadline, stopped)?;
            let reply = self.once(body, deadline, stopped)?;
            let mut wait = Duration::from_secs(1 << attempt);
            match reply {
                Ok(reply) if reply.status == 429 || reply.status >= 500 => {
                    last = format!("HTTP {}: {}", reply.status, self.excerpt(&reply.body));
                    wait = reply.retry_after.unwrap_or(wait);
                }
                Ok(reply) => return Ok(reply),
                Err(error @ ClientError::Connection { .. }) => last = error.to_string(),
                Err(
                    error @ (ClientError::Redirect { .. }
                    | ClientError::Moved { .. }
                    | ClientError::RedirectLoop),
                ) => {
                    return Err(MutatorError::Exhausted(error.to_string()));
                }
                Err(error) => return Err(MutatorError::no_answer(error.to_string())),
            }
            if attempt + 1 < MAX_ATTEMPTS {
                pause(wait.min(MAX_WAIT), deadline, stopped)
                    .map_err(|error| with_reason(error, &last))?;
            }
        }
        Err(MutatorError::no_answer(format!(
            "{MAX_ATTEMPTS} attempts failed; the last: {last}"
        )))
    }

    /// Sends a body once, and waits until the response, the deadline or a stop.
    fn once(
        &self,
        body: &[u8],
        deadline: Instant,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Result<client::Reply, ClientError>, MutatorError> {
        let runtime = start_local_runtime();
        let runtime = runtime.map_err(|error| MutatorError::no_answer(error.to_string()))?;
        let key = self.endpoint.key.header();
        runtime.block_on(async {
            let sending = post(&self.endpoint.url, key.as_deref(), body);
            tokio::pin!(sending);
            loop {
                tokio::select! {
                    reply = &mut sending => return Ok(reply),
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                }
                if stopped() {
                    return Err(MutatorError::Stopped);
                }
                if Instant::now() >= deadline {
                    return Err(MutatorError::no_answer(
                        "the endpoint did not answer in time",
                    ));
                }
            }
        })
    }

    /// Returns the beginning of an external text, without the key.
    fn excerpt(&self, text: &str) -> String {
        // Redacted before truncation, which could leave a part of the key that no longer matches.
        let text: String = self.endpoint.key.scrub(text).chars().take(300).collect();
        escape::line(text.trim())
    }

    /// Explains a status for which a retry is useless.
    fn refused(&self, status: u16, body: &str) -> MutatorError {
        let excerpt = self.excerpt(body);
        match status {
            401 | 403 => MutatorError::Exhausted(format!(
                "HTTP {status}: the endpoint refuses the key; set TUNER_LLM_KEY to a valid one ({excerpt})"
            )),
            404 => MutatorError::Exhausted(format!(
                "HTTP 404: no such model or address; check TUNER_LLM_MODEL ({}) and TUNER_LLM_URL ({excerpt})",
                escape::line(&self.endpoint.model)
            )),
            _ => MutatorError::no_answer(format!("HTTP {status}: {excerpt}")),
        }
    }

    /// Stores the conversation without headers, which contain the key. For a stream only the text is
    /// stored: the key may be split across its events.
    fn transcribe(
        &mut self,
        request: &MutationRequest,
        messages: &Value,
        reply: &client::Reply,
        completion: &Completion,
    ) {
        self.count += 1;
        let name = format!("{:04}-{}.json", request.round, self.count);
        let response = match (reply.is_stream, serde_json::from_str(&reply.body)) {
            (true, _) => json!(completion.text),
            (false, Ok(document)) => document,
            (false, Err(_)) => json!(reply.body),
        };
        let text = json!({
            "request": request.id,
            "host": self.endpoint.url.authority().map(ToString::to_string),
            "model": self.endpoint.model,
            "messages": messages,
            "status": reply.status,
            "usage": [completion.prompt_tokens, completion.answer_tokens],
            "defect": completion.defect,
            "response": response,
        });
        let text = self.endpoint.key.scrub_value(text).to_string();
        let path = self.transcripts.join(name);
        if let Err(error) = crate::atomic::write(&path, text.as_bytes()) {
            say!(
                "warning: {}: the transcript cannot be written: {error}",
                path.display()
            );
        }
    }
}

impl Mutator for HttpMutator {
    fn propose(
        &mut self,
        request: &MutationRequest,
        within: Duration,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError> {
        if let Some(limit) = self.cost_limit.filter(|limit| self.spent >= *limit) {
            return Err(MutatorError::Exhausted(format!(
                "the cost limit is reached: {:.4} of {limit}; raise --cost-limit to go on",
                self.spent
            )));
        }
        let deadline = Instant::now() + within;
        let messages = self.prompts.messages(request);
        let body = json!({
            "model": self.endpoint.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let reply = self.send(body.to_string().as_bytes(), deadline, stopped)?;
        let completion = Completion::read(&reply.body, reply.is_stream, &reply.content_type);
        // Before the status is checked: the transcript matters most for rejected requests.
        self.transcribe(request, &messages, &reply, &completion);
        if reply.status != 200 {
            return Err(self.refused(reply.status, &reply.body));
        }
        let (prompt, answer) = (completion.prompt_tokens, completion.answer_tokens);
        let cost = self.endpoint.price(prompt, answer).unwrap_or(0.0);
        // Before the defect is reported: an unusable response consumes tokens, too.
        self.spent += cost;
        let usage = Usage {
            tokens: prompt + answer,
            cost,
        };
        if let Some(defect) = &completion.defect {
            let why = self.excerpt(defect);
            return Err(MutatorError::NoAnswer { why, usage });
        }
        // The model may repeat the key if the endpoint put it into its context.
        let text = self.endpoint.key.scrub(&completion.text);
        Ok(Reply {
            bytes: chat::answer(&text, &request.id),
            usage: Some(usage),
        })
    }
}

fn with_reason(error: MutatorError, reason: &str) -> MutatorError {
    match error {
        MutatorError::NoAnswer { why, usage } => MutatorError::NoAnswer {
            why: format!("{why}; the last: {reason}"),
            usage,
        },
        other => other,
    }
}

/// Waits until the deadline or a stop at most.
fn pause(
    wait: Duration,
    deadline: Instant,
    stopped: &dyn Fn() -> bool,
) -> Result<(), MutatorError> {
    let end = Instant::now() + wait;
    while Instant::now() < end {
        if stopped() {
            return Err(MutatorError::Stopped);
        }
        if Instant::now() >= deadline {
            return Err(MutatorError::no_answer(
                "the endpoint did not answer in time",
            ));
        }
        std::thread::sleep(POLL_INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
