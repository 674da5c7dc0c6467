//! Settings of the endpoint, from the environment.

use hyper::Uri;
use serde_json::Value;

/// Key of an endpoint. It implements neither `Debug` nor `Display`, so that it cannot be printed.
pub(super) struct Key(Option<String>);

impl Key {
    /// Returns the value of the header `authorization`.
    pub(super) fn header(&self) -> Option<String> {
        self.0.as_ref().map(|key| format!("Bearer {key}"))
    }

    /// Redacts the key in external text.
    pub(super) fn scrub(&self, text: &str) -> String {
        match &self.0 {
            Some(key) => text.replace(key.as_str(), "[key]"),
            None => text.to_owned(),
        }
    }

    /// Redacts the key in all texts of a JSON value; there it may be written with escapes.
    pub(super) fn scrub_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.scrub(&text)),
            Value::Array(all) => all.into_iter().map(|one| self.scrub_value(one)).collect(),
            Value::Object(all) => all
                .into_iter()
                .map(|(name, one)| (self.scrub(&name), self.scrub_value(one)))
                .collect(),
            other => other,
        }
    }
}

/// OpenAI-compatible endpoint.
pub(super) struct Endpoint {
    pub(super) url: Uri,
    pub(super) model: String,
    pub(super) key: Key,
    /// Price of a million tokens of the request, and of the answer.
    pub(super) prices: Option<[f64; 2]>,
    pub(super) requests_per_minute: Option<u32>,
}

impl Endpoint {
    /// Reads `TUNER_LLM_URL`, `TUNER_LLM_MODEL`, `TUNER_LLM_KEY`, `TUNER_LLM_PRICES` and
    /// `TUNER_LLM_RPM`.
    ///
    /// # Errors
    /// A variable that is missing or wrong, with an example.
    pub(super) fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let base = get("TUNER_LLM_URL").ok_or(
            "--mutator http: set TUNER_LLM_URL to the base URL of an OpenAI-compatible endpoint, such as \
             https://api.openai.com/v1 or http://localhost:8000/v1",
        )?;
        let model = get("TUNER_LLM_MODEL")
            .filter(|model| !model.trim().is_empty())
            .ok_or("--mutator http: set TUNER_LLM_MODEL to the name of a model of the endpoint")?;
        let key = get("TUNER_LLM_KEY").filter(|key| !key.trim().is_empty());
        let url = url(&base, key.is_some())?;
        let rpm = get("TUNER_LLM_RPM").map(|text| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| {
                format!("TUNER_LLM_RPM: `{text}` is not a number of requests; type 20")
            })
        });
        let prices = get("TUNER_LLM_PRICES")
            .map(|text| prices(&text))
            .transpose()?;
        Ok(Self {
            url,
            model,
            key: Key(key.map(|key| key.trim().to_owned())),
            prices,
            requests_per_minute: rpm.transpose()?,
        })
    }

    /// Returns the price of an answer; `None` without prices.
    pub(super) fn price(&self, prompt_tokens: u64, answer_tokens: u64) -> Option<f64> {
        let [prompt, answer] = self.prices?;
        Some((prompt_tokens as f64 * prompt + answer_tokens as f64 * answer) / 1e6)
    }
}

/// Returns the URL of chat completions below a base URL.
fn url(base: &str, has_key: bool) -> Result<Uri, String> {
    let wrong = |why: &str| Err(format!("TUNER_LLM_URL: {why}; type https://HOST/v1"));
    let text = format!("{}/chat/completions", base.trim().trim_end_matches('/'));
    let Ok(url) = text.parse::<Uri>() else {
        return wrong("not a URL");
    };
    let Some(host) = url.host() else {
        return wrong("it has no host");
    };
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return wrong("a name or password in a URL shows in logs; put the key into TUNER_LLM_KEY");
    }
    let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    match url.scheme_str() {
        Some("https") => Ok(url),
        Some("http") if is_local || !has_key => Ok(url),
        Some("http") => wrong("http would send the key in the clear"),
        _ => wrong("neither http nor https"),
    }
}

fn prices(text: &str) -> Result<[f64; 2], String> {
    let parts: Vec<f64> = text
        .split(',')
        .filter_map(|part| part.trim().parse().ok())
        .collect();
    match parts.as_slice() {
        [prompt, answer] if *prompt >= 0.0 && *answer >= 0.0 => Ok([*prompt, *answer]),
        _ => Err(format!(
            "TUNER_LLM_PRICES: `{text}` is not two prices of a million tokens, of request and answer; type 2.5,10"
        )),
    }
}
