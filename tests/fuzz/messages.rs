//! Messages between machines and between processes. They are stored as JSON, and mutated as JSON and as
//! what is sent.

use super::stored;
use tuner_process::{Decoder, encode};

/// Stored messages in the form in which fleets send them, and as text.
pub(super) fn fleet() -> Vec<Vec<u8>> {
    let texts = stored("corpus", "fleet_message");
    let packed = texts.iter().map(|text| {
        let message: serde_json::Value = serde_json::from_slice(text).unwrap();
        rmp_serde::to_vec_named(&message).unwrap()
    });
    packed.chain(texts.iter().cloned()).collect()
}

/// Reads a message of a fleet. Text that is JSON is packed first, so that damage to values gets past
/// the packing.
pub(super) fn read_fleet(bytes: &[u8]) {
    let refused = match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(message) => tuner_fleet::check_message(&rmp_serde::to_vec_named(&message).unwrap()),
        Err(_) => tuner_fleet::check_message(bytes),
    };
    assert!(refused.err().is_none_or(|why| !why.is_empty()));
}

/// Stored headers, as frames and alone.
pub(super) fn process() -> Vec<Vec<u8>> {
    let headers = stored("corpus", "process_message");
    let frames = headers.iter().map(|header| {
        let code: &[u8] = &[0x7f; 64];
        encode(0, &[header, code, code]).unwrap()
    });
    frames.chain(headers.iter().cloned()).collect()
}

/// Reads bytes as frames and, behind a good frame's head, as requests and responses.
pub(super) fn read_process(bytes: &[u8]) {
    use tuner_device::worker::protocol::{Request, Response};
    let mut decoder = Decoder::default();
    // As a pipe has it: in pieces.
    for piece in bytes.chunks(7) {
        decoder.push(piece);
        while let Ok(Some(parts)) = decoder.take() {
            let _ = Request::from_parts(parts);
        }
    }
    let parts = || vec![bytes.to_vec(), bytes.to_vec(), bytes.to_vec()];
    let request = Request::from_parts(parts()).map(drop);
    let response: std::io::Result<Response> = tuner_process::from_json(&parts());
    for error in [request.err(), response.err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
}
