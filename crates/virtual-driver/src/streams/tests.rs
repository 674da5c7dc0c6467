//! Tests of the order of operations.

use super::*;

fn write(streams: &mut Streams, stream: u64, bytes: Range<u64>) -> Vec<Conflict> {
    access(streams, stream, bytes, false)
}

fn access(streams: &mut Streams, stream: u64, bytes: Range<u64>, atomic: bool) -> Vec<Conflict> {
    let operation = streams.submit(stream, "op".into(), 1.0);
    let access = Access {
        bytes,
        write: true,
        atomic,
    };
    streams.check(&operation, vec![access])
}

#[test]
fn atomics_of_two_streams_do_not_conflict() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    assert!(access(&mut streams, a, 0..4, true).is_empty());
    assert!(access(&mut streams, b, 0..4, true).is_empty());
    assert!(!write(&mut streams, b, 0..4).is_empty());
}

#[test]
fn an_atomic_does_not_hide_an_earlier_write() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    assert!(write(&mut streams, a, 0..4).is_empty());
    assert!(access(&mut streams, a, 0..4, true).is_empty());
    assert!(!access(&mut streams, b, 0..4, true).is_empty());
}

#[test]
fn writes_of_two_streams_conflict() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    assert!(write(&mut streams, a, 0..64).is_empty());
    assert!(write(&mut streams, b, 64..128).is_empty());
    let conflicts = write(&mut streams, b, 32..40);
    assert_eq!(conflicts.first().map(|conflict| conflict.address), Some(32));
}

#[test]
fn an_event_orders_two_streams() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    let event = streams.create_event(0);
    write(&mut streams, a, 0..64);
    assert!(streams.record(event, a) && streams.wait(b, event));
    assert!(write(&mut streams, b, 0..64).is_empty());
    // The event does not order the other direction.
    assert!(!write(&mut streams, a, 0..64).is_empty());
}

#[test]
fn the_host_orders_what_it_waited_for() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    write(&mut streams, a, 0..64);
    streams.synchronize(a);
    assert!(write(&mut streams, b, 0..64).is_empty());
}

#[test]
fn the_legacy_stream_waits_for_blocking_streams_only() {
    let mut streams = Streams::default();
    let (blocking, free) = (streams.create(0, 0), streams.create(NON_BLOCKING, 0));
    write(&mut streams, blocking, 0..64);
    assert!(write(&mut streams, LEGACY, 0..64).is_empty());
    assert!(write(&mut streams, blocking, 0..64).is_empty());
    write(&mut streams, free, 64..128);
    assert!(!write(&mut streams, LEGACY, 64..128).is_empty());
}

#[test]
fn two_streams_overlap_on_the_virtual_clock() {
    let mut streams = Streams::default();
    let (a, b) = (streams.create(0, 0), streams.create(0, 0));
    streams.submit(a, "op".into(), 30.0);
    streams.submit(b, "op".into(), 20.0);
    streams.synchronize(ALL_STREAMS);
    assert!((streams.now_us() - 30.0).abs() < 1e-9);
}

#[test]
fn the_default_stream_times_the_blocking_streams() {
    for (flags, spent) in [(0, 30.0), (NON_BLOCKING, 0.0)] {
        let mut streams = Streams::default();
        let (a, b) = (streams.create(flags, 0), streams.create(flags, 0));
        let (start, end) = (streams.create_event(0), streams.create_event(0));
        assert!(streams.record(start, LEGACY));
        streams.submit(a, "op".into(), 30_000.0);
        streams.submit(b, "op".into(), 20_000.0);
        assert!(streams.destroy(a) && streams.record(end, LEGACY));
        assert_eq!(streams.elapsed_ms(start, end), Some(spent));
        // A blocking stream starts after the default stream.
        streams.submit(LEGACY, "op".into(), 50_000.0);
        assert!(streams.record(end, b));
        let ended = if flags == 0 { 80.0 } else { 20.0 };
        assert_eq!(streams.elapsed_ms(start, end), Some(ended));
    }
}

#[test]
fn work_of_a_destroyed_stream_ends_before_the_device_is_idle() {
    let mut streams = Streams::default();
    let (a, b) = (
        streams.create(NON_BLOCKING, 0),
        streams.create(NON_BLOCKING, 0),
    );
    write(&mut streams, a, 0..64);
    assert!(streams.destroy(a) && !streams.holds(a));
    assert!(!write(&mut streams, b, 0..4).is_empty());
    streams.synchronize(ALL_STREAMS);
    assert!(write(&mut streams, b, 4..64).is_empty());
}

#[test]
fn default_streams_cannot_be_destroyed() {
    let mut streams = Streams::default();
    for stream in [LEGACY, LEGACY_HANDLE, PER_THREAD] {
        assert!(!streams.destroy(stream) && streams.holds(stream));
    }
}

#[test]
fn the_legacy_stream_waits_for_destroyed_blocking_streams() {
    let mut streams = Streams::default();
    for (flags, ordered) in [(0, true), (NON_BLOCKING, false)] {
        let stream = streams.create(flags, 0);
        write(&mut streams, stream, 0..64);
        assert!(streams.destroy(stream));
        // The last stream is gone, and its work is not.
        assert_eq!(write(&mut streams, LEGACY, 0..64).is_empty(), ordered);
        streams.synchronize(ALL_STREAMS);
    }
}
