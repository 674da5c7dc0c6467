use super::*;
use tuner_core::value::Value;

fn start() -> EvolutionStart {
    EvolutionStart {
        kernel: "k".to_owned(),
        template_hash: "h".to_owned(),
        device: "vgpu:h100".to_owned(),
        timing: TimingKind::Predicted,
        seed: Seed(u64::MAX),
        mutator: "scripted".to_owned(),
        settings: serde_json::json!({"rounds": 3}),
    }
}

fn change(round: u32, parent: Option<i64>) -> Change {
    Change {
        id: 0,
        round,
        parent,
        mutator: "scripted".to_owned(),
        note: "unroll".to_owned(),
        diff: "@@".to_owned(),
        source: Some("src".to_owned()),
        space: Some("{}".to_owned()),
        tokens: 12,
        cost: 0.5,
        seconds: 1.25,
        outcome: "predicted_better".to_owned(),
        verdict: Some("ok".to_owned()),
        detail: "2 of 2".to_owned(),
        code: "abc".to_owned(),
        behaviour: vec![1.5, 2.0],
        times: vec![ChangeTime {
            problem: "p".to_owned(),
            us: 10.0,
            incumbent_us: 20.0,
            shipped_us: 30.0,
            config: vec![("A".to_owned(), Value::Int(4))],
        }],
    }
}

#[tokio::test]
async fn changes_are_read_back_as_they_were_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    let name = store.begin_evolution(start()).await.unwrap();
    let first = store.add_change(&name, change(1, None)).await.unwrap();
    let second = store
        .add_change(&name, change(2, Some(first)))
        .await
        .unwrap();
    let stored = store.unfinished_evolution(&start()).await.unwrap().unwrap();
    assert_eq!(stored.start, start());
    let expected = [
        Change {
            id: first,
            ..change(1, None)
        },
        Change {
            id: second,
            ..change(2, Some(first))
        },
    ];
    assert_eq!(stored.changes, expected);
    store.set_evolution_state(&name, "finished").await.unwrap();
    assert!(
        store
            .unfinished_evolution(&start())
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(store.lineages(Some("k"), None).await.unwrap().len(), 1);
    assert!(store.lineages(Some("x"), None).await.unwrap().is_empty());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_round_is_stored_once_and_only_in_an_evolution() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    let name = store.begin_evolution(start()).await.unwrap();
    store.add_change(&name, change(1, None)).await.unwrap();
    assert!(store.add_change(&name, change(1, None)).await.is_err());
    assert!(store.add_change("other", change(2, None)).await.is_err());
    store.close().await.unwrap();
}
