use super::*;
use tuner_core::value::Value;
use tuner_space::Config;

fn answers(timing: &'static str) -> Vec<Answer> {
    let change = |what: &str, to: &str| Change {
        what: what.to_owned(),
        from: String::new(),
        to: to.to_owned(),
        config: Config::new(vec![0]),
    };
    let of = |change: &Change| {
        let config = vec![("BM".to_owned(), Value::Int(64))];
        Answer::new(["k", "p", "d"], timing, change, config, false)
    };
    vec![of(&change("", "")), of(&change("BM", "128"))]
}

fn headings(format: Format, answers: &[Answer]) -> Vec<String> {
    let text = format_answers(format, answers).expect("text");
    let words = text
        .lines()
        .next()
        .unwrap_or_default()
        .split([',', ' ', '|']);
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[test]
fn a_table_has_the_columns_of_its_kind_of_time_and_csv_always_the_same() {
    let (predicted, measured) = (answers("predicted"), answers("measured"));
    let old = "change from to verdict time_us cost bound occupancy registers spill_bytes \
               bank_conflicts timing detail";
    assert_eq!(headings(Format::Table, &predicted).join(" "), old);
    let csv = headings(Format::Csv, &predicted);
    assert_eq!(csv, headings(Format::Csv, &measured));
    let more = format!("{old} cost_low cost_high same shared_bytes flags");
    assert_eq!(csv.join(" "), more);
    let table = headings(Format::Md, &measured).join(" ");
    assert!(table.contains("cost cost_low cost_high same"), "{table}");
}

#[test]
fn noise_is_called_the_same_and_a_doubtful_time_says_why() {
    let mut answers = answers("measured");
    answers[1].same = Some(true);
    answers[1].flags = vec!["unsteady".to_owned()];
    let table = format_answers(Format::Table, &answers).unwrap();
    let last = table.lines().last().unwrap_or_default();
    assert!(
        last.contains("same") && last.contains("unsteady"),
        "{table}"
    );
    answers[1].same = Some(false);
    let table = format_answers(Format::Table, &answers).unwrap();
    let last = table.lines().last().unwrap_or_default();
    assert!(!last.contains("same"), "{table}");
    let json = format_answers(Format::Json, &answers).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows[0]["same"], serde_json::Value::Null);
    assert_eq!(rows[1]["flags"][0], "unsteady");
}
