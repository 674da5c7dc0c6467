use super::*;

#[test]
fn a_foreign_file_is_refused_with_its_place() {
    for (text, hint) in [
        ("int main() {}\n", "no header of tuned configurations"),
        ("{\"entries\": []}", "no record of results"),
        (
            "{\"format\": \"tuner-export\", \"entries\": [{}]}",
            "entry 1 has no device",
        ),
        ("{\"a\": }", "f.json:1:"),
    ] {
        let error = read(text, "f.json").unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}
