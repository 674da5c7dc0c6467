use super::{Decoder, Parts, encode};
use proptest::prelude::*;

fn frames(messages: &[Parts]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, parts) in messages.iter().enumerate() {
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        bytes.extend(encode(number as u32, &slices).unwrap());
    }
    bytes
}

proptest! {
    #[test]
    fn frames_read_back_as_they_were_written_in_pieces_of_any_size(
        messages in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..5), 0..5),
        piece in 1_usize..50,
    ) {
        let mut decoder = Decoder::default();
        let mut read = Vec::new();
        for bytes in frames(&messages).chunks(piece) {
            decoder.push(bytes);
            while let Some(parts) = decoder.take().unwrap() {
                read.push(parts);
            }
        }
        prop_assert_eq!(read, messages);
        prop_assert!(decoder.is_empty());
    }

    #[test]
    fn garbage_is_an_error_or_incomplete_but_never_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        magic in any::<bool>(),
    ) {
        let mut decoder = Decoder::default();
        if magic {
            decoder.push(b"TNF1\0\0\0\0");
        }
        decoder.push(&bytes);
        let _ = decoder.take();
    }
}

#[test]
fn no_flipped_bit_and_no_cut_gives_another_message() {
    let whole = encode(0, &[b"{\"a\":1}", b"\x7fELF"]).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        // An immediate error, not a length for which the reader waits.
        assert!(decoder.take().is_err(), "bit {bit}");
    }
    for end in 0..whole.len() {
        let mut decoder = Decoder::default();
        decoder.push(&whole[..end]);
        assert!(matches!(decoder.take(), Ok(None)), "cut at {end}");
    }
}

#[test]
fn a_frame_that_comes_twice_or_too_early_is_an_error() {
    for numbers in [[0, 0], [0, 2], [1, 2]] {
        let mut decoder = Decoder::default();
        for number in numbers {
            decoder.push(&encode(number, &[b"x"]).unwrap());
        }
        assert!(decoder.take().and_then(|_| decoder.take()).is_err());
    }
}
