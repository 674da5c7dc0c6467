use super::chat::{Completion, answer};
use super::client::wait_of;
use super::endpoint::Endpoint;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, String> {
    let all: BTreeMap<&str, &str> = variables.iter().copied().collect();
    Endpoint::from_variables(|name| all.get(name).map(ToString::to_string))
}

#[test]
fn each_wrong_variable_is_named_and_no_message_has_the_key() {
    let url = ("TUNER_LLM_URL", "https://h/v1");
    let model = ("TUNER_LLM_MODEL", "m");
    let key = ("TUNER_LLM_KEY", "sk-secret");
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[], "set TUNER_LLM_URL"),
        (&[url], "set TUNER_LLM_MODEL"),
        (&[("TUNER_LLM_URL", "h/v1"), model], "TUNER_LLM_URL"),
        (
            &[("TUNER_LLM_URL", "ftp://h/v1"), model],
            "neither http nor https",
        ),
        (
            &[("TUNER_LLM_URL", "https://a:b@h/v1"), model],
            "shows in logs",
        ),
        (
            &[("TUNER_LLM_URL", "http://h/v1"), model, key],
            "in the clear",
        ),
        (&[url, model, ("TUNER_LLM_RPM", "0")], "TUNER_LLM_RPM"),
        (&[url, model, ("TUNER_LLM_PRICES", "1")], "TUNER_LLM_PRICES"),
    ];
    for (variables, text) in cases {
        let error = endpoint(variables).err().unwrap();
        assert!(
            error.contains(text) && !error.contains("sk-secret"),
            "{variables:?}: {error}"
        );
    }
    let endpoint = endpoint(&[("TUNER_LLM_URL", "http://127.0.0.1:1/v1/"), model, key]).unwrap();
    assert_eq!(endpoint.url.path(), "/v1/chat/completions");
    assert_eq!(endpoint.key.scrub("a sk-secret b"), "a [key] b");
    assert_eq!(endpoint.price(1, 1), None);
}

#[test]
fn a_stream_and_a_document_are_read_alike() {
    let stream = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n: comment\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"he\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let document = "{\"choices\":[{\"message\":{\"content\":\"hello\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}";
    let read = Completion::read(stream, true, "text/event-stream");
    assert_eq!(
        (read.text.as_str(), read.prompt_tokens, read.answer_tokens),
        ("hello", 7, 2)
    );
    assert_eq!(read, Completion::read(document, false, "application/json"));
    assert_eq!(read.defect, None);
    // The lines of an event form one document; the end may be marked by the finish reason alone.
    let lines = "data: {\"choices\":[{\"delta\":{\"content\":\ndata: \"hello\"},\ndata:\"finish_reason\":\"stop\"}]}\n\n";
    let read = Completion::read(lines, true, "");
    assert_eq!((read.text.as_str(), &read.defect), ("hello", &None));
    let parts = "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"he\"},{\"type\":\"text\",\"text\":\"llo\"}]}}]}";
    assert_eq!(Completion::read(parts, false, "").text, "hello");
}

#[test]
fn each_defect_of_a_response_is_named_and_its_tokens_count() {
    let usage = "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}";
    let event = |rest: &str| format!("data: {{\"choices\":[{{{rest}}}],{usage}}}\n\n");
    let cases = [
        (false, format!("{{{usage}}}"), "no text"),
        (
            false,
            format!("{{\"error\":{{\"message\":\"overloaded\"}},{usage}}}"),
            "reports an error: overloaded",
        ),
        (
            false,
            format!(
                "{{\"choices\":[{{\"message\":{{\"content\":null,\"tool_calls\":[{{}}]}}}}],{usage}}}"
            ),
            "called a tool",
        ),
        (
            true,
            event("\"delta\":{\"content\":\"int\"}"),
            "ended before",
        ),
        (
            true,
            event("\"delta\":{\"content\":\"int\"},\"finish_reason\":\"length\"")
                + "data: [DONE]\n\n",
            "token limit",
        ),
    ];
    for (is_stream, body, text) in cases {
        let read = Completion::read(&body, is_stream, "");
        assert!(
            read.defect.as_ref().unwrap().contains(text),
            "{body}: {:?}",
            read.defect
        );
        assert_eq!((read.prompt_tokens, read.answer_tokens), (7, 2), "{body}");
    }
    let html = Completion::read("<html>", false, "text/html");
    assert!(html.defect.unwrap().contains("content type text/html"));
    assert!(Completion::read("data: {\n\n", true, "").defect.is_some());
}

#[test]
fn a_wait_is_seconds_or_a_date() {
    let now = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
    assert_eq!(wait_of("7", now), Some(Duration::from_secs(7)));
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(wait_of(date, now), Some(Duration::from_secs(30)));
    assert_eq!(
        wait_of("Sat, 05 Nov 1994 08:49:37 GMT", now),
        Some(Duration::ZERO)
    );
    assert_eq!(wait_of("soon", now), None);
}

#[test]
fn thoughts_are_not_the_answer() {
    let draft = "<think>\n```cuda\nint draft;\n```\n</think>\nFaster.\n```cuda\nint real;\n```\n";
    for text in [draft, &draft.replace("<think>", "")] {
        let found: Value = serde_json::from_slice(&answer(text, "r-1")).unwrap();
        assert_eq!(found["source"], "int real;\n", "{text}");
        assert_eq!(found["note"], "Faster.");
    }
    let cut: Value =
        serde_json::from_slice(&answer("<think>\n```cuda\nint a;\n```\n", "r-1")).unwrap();
    assert!(cut["source"].is_null());
}

#[test]
fn the_answer_is_found_in_each_form_of_text() {
    let found = |text: &str| -> Value { serde_json::from_slice(&answer(text, "r-1")).unwrap() };
    let block = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE";
    let blocks = found(&format!("Unroll it.\n\n```\n{block}\n```\nand\n{block}\n"));
    assert_eq!(blocks["note"], "Unroll it.");
    assert_eq!(
        blocks["blocks"].as_str().unwrap(),
        format!("{block}\n{block}\n")
    );
    let json = found("Here:\n```json\n{\"diff\": \"@@\", \"note\": \"n\"}\n```\n");
    assert_eq!(
        (json["diff"].as_str(), json["id"].as_str()),
        (Some("@@"), Some("r-1"))
    );
    assert_eq!(found("x\n```diff\n@@\n```\n")["diff"], "@@\n");
    assert_eq!(found("x\n```cuda\nint a;\n```\n")["source"], "int a;\n");
    // Plain text is an answer without a change, which is malformed later.
    assert!(found("sorry")["source"].is_null());
}
