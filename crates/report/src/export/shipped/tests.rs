use super::*;

#[test]
fn a_foreign_file_is_refused_with_its_place() {
    for (text, hint) in [
        ("int main() {}\n", "not a header of tuned configurations"),
        ("{\"entries\": []}", "not a record of results"),
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

#[test]
fn the_source_of_a_launcher_is_read_back_to_the_byte() {
    use tuner_core::escape::CLiteral;
    let hostile = "\"}; // ??/ \\n \u{e9} \t, nullptr};\n";
    let line = |text: &str| {
        format!(
            "  {}\n",
            CLiteral::new(text).to_string().replace("\\012", "\\n")
        )
    };
    let launcher = |first: &str| {
        format!(
            "static const char *const source_text[] = {{\n{}{}  ,\n{}  , nullptr}};\n\
             static const char *const header_0[] = {{\n{}  , nullptr}};\n\
             static const char *const header_names[] = {{{}, nullptr}};\n",
            line(first),
            line(hostile),
            line("last"),
            line(hostile),
            CLiteral::new("a \"b\".h"),
        )
    };
    let read = launched_source(&launcher("#line 1 \"k.cu\"\n"))
        .unwrap()
        .unwrap();
    assert_eq!(read.text, format!("{hostile}last"));
    assert_eq!(read.headers, [("a \"b\".h".to_owned(), hostile.to_owned())]);
    assert_eq!(launched_source("int x;\n"), Ok(None));
    for damaged in [
        launcher("int x;\n"),
        launcher("#line 1 \"k.cu\"\n").replace("\\\\n", "\\x"),
        launcher("#line 1 \"k.cu\"\n").replace("header_0", "header_1"),
        launcher("#line 1 \"k.cu\"\n").replace("header_names", "names"),
        launcher("#line 1 \"k.cu\"\n").replace("  , nullptr", ""),
    ] {
        assert!(launched_source(&damaged).is_err(), "{damaged}");
    }
}
