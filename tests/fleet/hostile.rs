//! Messages that are wrong, late, double or false.

use super::{Process, Site, assert_same, device, status, tuner, until};
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{Context, Message};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::json;
use std::time::Duration;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_core::units::{ContentHash, Micros};
use tuner_engine::Judged;
use tuner_engine::fleet::{Answer, Assignment, Fleet as _, PackedFiles};
use tuner_fleet::{Access, Hub, HubSettings, Names};
use tuner_judge::judgement::TimedJudgement;

/// A message as fleets send them.
fn packed(message: &serde_json::Value) -> Bytes {
    rmp_serde::to_vec_named(message).unwrap().into()
}

/// The queue of candidates for the recording, once a hub has made it.
pub(super) async fn work_queue(context: &Context) -> Consumer<pull::Config> {
    loop {
        let stream = context.get_stream("TUNER_tuner_V2_WORK").await;
        if let Ok(stream) = stream
            && let Some(Ok(name)) = stream.consumer_names().next().await
            && let Ok(found) = stream.get_consumer::<pull::Config>(&name).await
        {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The next message with orders.
pub(super) async fn next_order(consumer: &Consumer<pull::Config>) -> Message {
    let expires = Duration::from_secs(10);
    let batch = consumer.batch().max_messages(1).expires(expires);
    let mut messages = batch.messages().await.unwrap();
    messages.next().await.unwrap().unwrap()
}

/// Answers a message as a worker does, with this outcome for each of its orders.
pub(super) async fn answer(
    context: &Context,
    message: &Message,
    mut outcome: impl FnMut(&serde_json::Value) -> serde_json::Value,
) {
    let sent: serde_json::Value = rmp_serde::from_slice(&message.payload).unwrap();
    let orders = sent["orders"].as_array().unwrap();
    let answers: Vec<_> = orders
        .iter()
        .map(|order| json!({ "id": order["id"], "outcome": outcome(order) }))
        .collect();
    let answer = json!({
        "protocol": 2, "worker": "liar", "attempt": sent["attempt"], "answers": answers,
    });
    let (run, name) = (
        sent["run"].as_str().unwrap(),
        message.subject.rsplit('.').next().unwrap(),
    );
    let subject = format!("tuner.tuner.v2.result.{run}.{name}");
    let stored = context.publish(subject, packed(&answer)).await.unwrap();
    stored.await.unwrap();
    message.double_ack().await.unwrap();
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn answers_that_come_twice_and_in_another_order_are_stored_once() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "1"];
    let (alone, _workers, mut run) = site.begin(2, &wanted);
    site.server.with_client(async |context| {
        let client = context.client();
        let mut answers = client.subscribe("tuner.tuner.v2.result.>").await.unwrap();
        let mut kept = Vec::new();
        let mut repeated = 0;
        while repeated < 64 {
            let next = tokio::time::timeout(Duration::from_secs(30), answers.next()).await;
            let message = next.unwrap().unwrap();
            kept.push((message.subject, message.payload));
            if kept.len() == 8 {
                // Backwards, each twice.
                for (subject, payload) in kept.drain(..).rev() {
                    for _ in 0..2 {
                        client
                            .publish(subject.clone(), payload.clone())
                            .await
                            .unwrap();
                        repeated += 1;
                    }
                }
                client.flush().await.unwrap();
                // Those came to this subscription too.
                for _ in 0..16 {
                    let _ = tokio::time::timeout(Duration::from_millis(50), answers.next()).await;
                }
            }
        }
    });
    assert_same(&site, "t.db", &alone, &mut run);
    assert!(
        run.log().contains("second answers dropped"),
        "{}",
        run.log()
    );
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn what_is_no_message_is_dropped_and_counted_on_both_sides() {
    let mut site = Site::with("max_payload: 4MB");
    let wanted = ["--evals", "1200", "--strategy", "random", "--seed", "2"];
    let alone = site.alone(&wanted);
    let worker = site.worker();
    let mut run = site.run("t.db", &wanted);
    site.until_stored(&run, "t.db", 50);
    let seen = status(&site);
    let (id, class) = (
        seen["hubs"][0]["run"].as_str().unwrap().to_owned(),
        seen["hubs"][0]["class"].as_str().unwrap().to_owned(),
    );
    let nonsense = [
        Bytes::from(vec![b'{'; 2 << 20]),
        Bytes::from_static(b""),
        Bytes::from_static(b"\xff\xff"),
        // A map of four thousand million entries, of which none comes.
        Bytes::from_static(b"\xdf\xff\xff\xff\xff"),
        packed(&json!({"protocol": 9, "run": "x"})),
        packed(&json!({"protocol": 2, "object": "0000"})),
        packed(
            &json!({"protocol": 2, "run": "a.b > *", "assignment": "x", "attempt": 0, "orders":
            [{"id": "x", "candidate": "x", "task": 99, "choices": [u32::MAX], "step": "recorded"}]}),
        ),
        packed(&json!({"protocol": 2, "run": "x", "assignment": "x", "attempt": 0, "orders": []})),
    ];
    site.server.with_client(async |context| {
        for (number, payload) in nonsense.iter().enumerate() {
            for subject in [
                format!("tuner.tuner.v2.work.device.{class}.{id}.nonsense{number}"),
                format!("tuner.tuner.v2.result.{id}.nonsense{number}"),
            ] {
                let sent = context.publish(subject, payload.clone()).await.unwrap();
                sent.await.unwrap();
            }
        }
    });
    until(
        || status(&site)["workers"][0]["malformed"] == nonsense.len(),
        || format!("{}\n{}", status(&site), worker.log()),
    );
    assert_same(&site, "t.db", &alone, &mut run);
    let counted = format!("{} messages that were none dropped", nonsense.len());
    assert!(run.log().contains(&counted), "{}", run.log());
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_worker_that_answers_for_another_candidate_is_not_believed() {
    let mut site = Site::new();
    let wanted = ["--evals", "60", "--seed", "3"];
    let alone = site.alone(&wanted);
    let mut run = site.run("t.db", &wanted);
    site.server.with_client(async |context| {
        let consumer = work_queue(&context).await;
        // The verdict on another candidate for the first that is asked of each message.
        for _ in 0..5 {
            let message = next_order(&consumer).await;
            let mut lied = false;
            answer(&context, &message, |_| {
                if std::mem::replace(&mut lied, true) {
                    return json!("leaving");
                }
                let other = ContentHash::from_stored("0".repeat(64));
                let wrong = Judgement::new(Verdict::Incorrect, "so says the liar");
                let lie = Answer::Judged(Box::new(Judged::without_device(other, wrong)));
                json!({ "answer": serde_json::to_value(&lie).unwrap() })
            })
            .await;
        }
    });
    let _worker = site.worker();
    assert_same(&site, "t.db", &alone, &mut run);
    assert!(
        run.log().contains("5 false answers dropped"),
        "{}",
        run.log()
    );
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn an_answer_that_contradicts_itself_or_the_recording_is_not_believed() {
    let mut site = Site::new();
    let wanted = ["--evals", "60", "--seed", "3"];
    let alone = site.alone(&wanted);
    let mut run = site.run("t.db", &wanted);
    site.server.with_client(async |context| {
        let consumer = work_queue(&context).await;
        for number in 0..5 {
            let message = next_order(&consumer).await;
            let mut lied = false;
            answer(&context, &message, |order| {
                if std::mem::replace(&mut lied, true) {
                    return json!("leaving");
                }
                let (judgement, time_us) = match number % 3 {
                    0 => (Judgement::new(Verdict::Incorrect, "so says the liar"), 12.0),
                    1 => (Judgement::ok(None), 1e-300),
                    // Possible, and not what is recorded.
                    _ => (Judgement::ok(None), 0.5),
                };
                let candidate = order["candidate"].as_str().unwrap().to_owned();
                let lie = Answer::Judged(Box::new(Judged {
                    candidate: ContentHash::from_stored(candidate),
                    found: TimedJudgement {
                        measured: Measured::recorded(vec![Micros::new(time_us).unwrap()]),
                        ..judgement.into()
                    },
                    compilation: None,
                    charged_us: 0,
                    put_off: false,
                    whole_tried: false,
                }));
                json!({ "answer": serde_json::to_value(&lie).unwrap() })
            })
            .await;
        }
    });
    let _worker = site.worker();
    assert_same(&site, "t.db", &alone, &mut run);
    assert!(
        run.log().contains("5 false answers dropped"),
        "{}",
        run.log()
    );
    assert!(
        run.log().contains("worker liar is set aside"),
        "{}",
        run.log()
    );
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_worker_that_cannot_use_the_files_ends_no_run_and_is_set_aside() {
    let mut site = Site::new();
    let wanted = ["--evals", "60", "--seed", "3"];
    let alone = site.alone(&wanted);
    let mut run = site.run("t.db", &wanted);
    site.server.with_client(async |context| {
        let consumer = work_queue(&context).await;
        let message = next_order(&consumer).await;
        answer(&context, &message, |_| {
            let lie = Answer::Unusable("there is no oracle".to_owned());
            json!({ "answer": serde_json::to_value(&lie).unwrap() })
        })
        .await;
    });
    let _worker = site.worker();
    assert_same(&site, "t.db", &alone, &mut run);
    let said = run.log();
    assert!(
        said.contains("a worker cannot use the run's files: liar"),
        "{said}"
    );
    assert!(said.contains("worker liar is set aside"), "{said}");
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn answers_that_nobody_ordered_take_bounded_memory() {
    let mut site = Site::new();
    let wanted = ["--evals", "1500", "--strategy", "random", "--seed", "5"];
    let alone = site.alone(&wanted);
    let mut run = site.run("t.db", &wanted);
    site.server.with_client(async |context| {
        let consumer = work_queue(&context).await;
        let message = next_order(&consumer).await;
        let sent: serde_json::Value = rmp_serde::from_slice(&message.payload).unwrap();
        let id = sent["run"].as_str().unwrap().to_owned();
        // Some 90 MB.
        for number in 0..100_u32 {
            let name = ContentHash::from_parts([&number.to_le_bytes()[..]]);
            let verdict = Judgement::new(Verdict::Incorrect, "x".repeat(900_000));
            let judged = Answer::Judged(Box::new(Judged::without_device(name.clone(), verdict)));
            let outcome = json!({ "answer": serde_json::to_value(&judged).unwrap() });
            let answer = json!({
                "protocol": 2, "worker": "liar", "attempt": 0,
                "answers": [{ "id": name, "outcome": outcome }],
            });
            let subject = format!("tuner.tuner.v2.result.{id}.{name}");
            let stored = context.publish(subject, packed(&answer)).await.unwrap();
            stored.await.unwrap();
        }
        message
            .ack_with(async_nats::jetstream::AckKind::Nak(None))
            .await
            .unwrap();
    });
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap() >> 10
    };
    std::thread::sleep(Duration::from_secs(3));
    // 64 MiB of answers, what reads them, and the program itself.
    assert!(resident() < 400, "{} MiB", resident());
    let _worker = site.worker();
    assert_same(&site, "t.db", &alone, &mut run);
    assert!(run.log().contains("false answers dropped"), "{}", run.log());
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_worker_refuses_a_fleet_of_another_version_with_a_sentence() {
    let mut site = Site::new();
    site.server.with_client(async |context| {
        let bucket = context
            .create_key_value(async_nats::jetstream::kv::Config {
                bucket: "tuner_tuner_hubs".to_owned(),
                ..Default::default()
            })
            .await
            .unwrap();
        let record = br#"{"protocol":3,"version":"9.9.9","run":"x","of the future":true}"#;
        bucket
            .put("run-x", Bytes::from_static(record))
            .await
            .unwrap();
    });
    let mut worker = site.worker();
    assert_eq!(worker.code(), 2, "{}", worker.log());
    let said = worker.log();
    assert!(
        said.contains("speaks protocol 3") && said.contains("9.9.9"),
        "{said}"
    );
    assert!(said.contains("install the same version"), "{said}");
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_worker_of_another_version_is_left_out_and_named() {
    let mut site = Site::new();
    let wanted = ["--evals", "30", "--seed", "4"];
    let mut first = site.run("a.db", &wanted);
    let _worker = site.worker();
    assert_eq!(first.code(), 0, "{}", first.log());
    site.server.with_client(async |context| {
        let bucket = context.get_key_value("tuner_tuner_workers").await.unwrap();
        let record = br#"{"protocol":0,"name":"old","version":"0.0.1","class":"x"}"#;
        bucket.put("old", Bytes::from_static(record)).await.unwrap();
    });
    let mut run = site.run("b.db", &wanted);
    assert_eq!(run.code(), 0, "{}", run.log());
    assert!(
        run.log()
            .contains("worker old (tuner 0.0.1) speaks protocol 0"),
        "{}",
        run.log()
    );
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_run_has_one_hub() {
    let site = Site::new();
    let hub = || {
        let settings = HubSettings {
            access: Access::open(&site.server.url()),
            names: Names::new("tuner").unwrap(),
            ack_wait: Duration::from_secs(1),
            presence: Duration::from_secs(2),
            cubin_bytes: 1 << 20,
        };
        Hub::connect(settings, &|_| {}).unwrap()
    };
    let assignment = Assignment {
        device: tuner_device::DeviceFacts {
            name: "x".to_owned(),
            kind: tuner_core::record::DeviceKind::Replay,
            limits: None,
            arch: String::new(),
            driver: None,
        },
        nvrtc: None,
        recording: Some(tuner_core::units::ContentHash::from_parts(
            [b"x".as_slice()],
        )),
        kernels: Vec::new(),
        tasks: Vec::new(),
        arch: None,
        prior: None,
    };
    let run = tuner_store::RunId::from_text("20260301T120000000-1a2b3c");
    let other = tuner_store::RunId::from_text("20260301T120000000-ffffff");
    let (one, two) = (hub(), hub());
    let session = one.open(&run, &assignment, PackedFiles::new()).unwrap();
    let Err(refused) = two.open(&run, &assignment, PackedFiles::new()) else {
        panic!("two hubs hold one run");
    };
    assert!(
        refused
            .to_string()
            .contains("is carried out by another hub"),
        "{refused}"
    );
    two.open(&other, &assignment, PackedFiles::new()).unwrap();
    session.close(true);
    two.open(&run, &assignment, PackedFiles::new()).unwrap();
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn an_answer_larger_than_a_message_may_be_travels_as_an_object() {
    let mut site = Site::new();
    // A recorded failure with two megabytes of compiler log.
    let log = "error: everything is wrong\\n".repeat(80_000);
    let text = format!(
        r#"{{"device_name":"X","kernel_name":"k","problem_size":"1",
        "tune_params_keys":["A"],"tune_params":{{"A":[1,2]}},"cache":{{
        "1":{{"A":1,"time":"CompilationFailedConfig","error":"{log}"}},
        "2":{{"A":2,"time":1.5,"times":[1.5,1.5]}}}}}}"#
    );
    let file = site.path("large.json");
    std::fs::write(&file, text).unwrap();
    let device = format!("replay:{}", file.display());
    let url = site.server.url();
    let _worker = site.worker_with(&url, &["--device", &device]);
    let db = site.path("t.db");
    let mut command = tuner();
    command.args([
        "run",
        "--fleet",
        &url,
        "--device",
        &device,
        "--strategy",
        "exhaustive",
    ]);
    let mut run = Process::start(command.arg("--db").arg(&db), site.path("run.log"));
    assert_eq!(run.code(), 0, "{}", run.log());
    assert_eq!(super::rows(&db).len(), 2);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn who_has_no_right_is_told_what_to_give() {
    let mut site = Site::with("authorization { user: hub, password: secret-of-the-hub }");
    let mut refused = site.worker();
    assert_eq!(refused.code(), 2, "{}", refused.log());
    assert!(refused.log().contains("--fleet-creds"), "{}", refused.log());
    let password = site.path("password");
    std::fs::write(&password, "secret-of-the-hub\n").unwrap();
    let password = password.display().to_string();
    let shown = ["--fleet-user", "hub", "--fleet-password", &password];
    let url = site.server.url();
    let device = device();
    let own = [&["--device", &device][..], &shown[..]].concat();
    let mut worker = site.worker_with(&url, &own);
    let mut run = site.run("t.db", &[&["--evals", "20"][..], &shown[..]].concat());
    assert_eq!(run.code(), 0, "{}", run.log());
    worker.signal("TERM");
    assert_eq!(worker.code(), 0, "{}", worker.log());
    let said = format!("{}{}", worker.log(), run.log());
    assert!(!said.contains("secret-of-the-hub"), "{said}");
}
