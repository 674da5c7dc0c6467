//! Lines of output without what differs from run to run.

/// A name of a run, such as `20261122T072606229-d8f153`.
pub(super) fn is_run(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = word.split_once('T').and_then(|(day, rest)| {
        let (time, tail) = rest.split_once('-')?;
        Some((day, time, tail))
    });
    parts.is_some_and(|(day, time, tail)| {
        let hexadecimal = tail.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits(day) && digits(time) && hexadecimal && tail.len() == 6
    })
}

/// A line without what differs from run to run: names of runs, numbers, and width of columns.
pub(super) fn shape(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let bare = word.trim_end_matches(':');
        if is_run(bare) {
            return word.replace(bare, "RUN");
        }
        let mut shape = String::new();
        for c in word.chars() {
            match c {
                '0'..='9' if shape.ends_with('#') => {}
                // A tie is marked behind the rank.
                '.' | '=' if shape.ends_with('#') => {}
                '0'..='9' => shape.push('#'),
                other => shape.push(other),
            }
        }
        shape
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A line without what differs from run to run: names of runs, days, times, commits, durations, and
/// the width of columns. `None` for what a run says of its progress, which its pace decides.
pub(super) fn masked(line: &str) -> Option<String> {
    if line.contains(" | best ") {
        return None;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parted = |word: &str, by: char, parts: usize| {
        word.split(by).count() == parts && word.split(by).all(digits)
    };
    let mut before = "";
    let words = line.split_whitespace().map(|word| {
        let bare = word.trim_end_matches([':', ',']);
        let hexadecimal = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let lasts = bare.ends_with('s') && bare.starts_with(|c: char| c.is_ascii_digit());
        let what = if is_run(bare) {
            "RUN"
        } else if parted(bare, '-', 3) {
            "DAY"
        } else if parted(bare, ':', 3) {
            "TIME"
        } else if parted(bare, '/', 2) {
            "PART"
        } else if hexadecimal && bare.len() == 10 {
            "COMMIT"
        } else if lasts && matches!(before, "in" | "after") {
            "DURATION"
        } else {
            bare
        };
        before = word;
        word.replacen(bare, what, 1)
    });
    Some(words.collect::<Vec<_>>().join(" "))
}

/// A line of which only the words count.
pub(super) fn loose(line: &str) -> String {
    shape(&masked(line).unwrap_or_else(|| line.to_owned()))
}
