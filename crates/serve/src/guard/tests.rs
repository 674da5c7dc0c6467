#[test]
fn only_names_of_this_machine_are_local() {
    for host in [
        "localhost",
        "LOCALHOST:7878",
        "127.0.0.1:1",
        "[::1]:7878",
        "127.9.9.9",
    ] {
        assert!(super::is_local(host), "{host}");
    }
    for host in [
        "",
        "evil.example:7878",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "[::2]",
        "localhost:80@evil.example",
        "evil@localhost",
        "localhost:",
        "localhost:port",
        "localhost:99999",
        "[::1",
        "localhost evil.example",
    ] {
        assert!(!super::is_local(host), "{host}");
    }
}

#[test]
fn the_scheme_of_a_token_may_be_in_any_case() {
    for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
        assert_eq!(
            super::bearer_token(value.as_bytes()),
            Some(&b"abc"[..]),
            "{value}"
        );
    }
    for value in ["Basic abc", "Bearerabc", "", "Bearer"] {
        assert_eq!(super::bearer_token(value.as_bytes()), None, "{value}");
    }
}
