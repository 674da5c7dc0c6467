//! Terminal output other than results: coloured messages and a live display. `NO_COLOR`, `CLICOLOR`,
//! `CLICOLOR_FORCE` and `TERM=dumb` have their usual meaning; only ASCII is written if the locale is not
//! UTF-8.

mod lines;
mod status;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
pub(super) use lines::doing;
use lines::{cut, running};
pub(super) use status::{Status, TaskStatus, WallBudget};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use tuner_core::activity;
use tuner_core::escape;
use tuner_core::panics::lock;
use tuner_core::record::Verdict;
use tuner_engine::format_duration;

const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();

/// Frame interval of the display, and the interval of its lines on a pipe.
const FRAME_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(30);
/// Width of lines on a pipe and of the final report, columns.
pub(super) const LINE_WIDTH: usize = 100;
/// Running tasks that are shown.
const SHOWN_TASKS: usize = 5;
/// Delay before the display appears.
const DISPLAY_DELAY: Duration = Duration::from_millis(300);

/// Form of the progress on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ProgressMode {
    /// A line every 30 s, also on a terminal.
    Plain,
    /// No progress; messages and the result stay.
    None,
    /// A JSON object every 30 s.
    Json,
}

static MODE: OnceLock<ProgressMode> = OnceLock::new();

/// Sets the form of the progress; the default is a display on a terminal and plain lines elsewhere.
pub(super) fn choose_progress(mode: Option<ProgressMode>) {
    if let Some(mode) = mode {
        let _ = MODE.set(mode);
    }
}

static COLOUR_OUT: LazyLock<bool> = LazyLock::new(|| coloured(&std::io::stdout()));
static COLOUR_ERR: LazyLock<bool> = LazyLock::new(|| coloured(&std::io::stderr()));
static UNICODE: LazyLock<bool> = LazyLock::new(|| unicode(|name| std::env::var(name).ok()));

fn coloured<S: anstream::stream::RawStream>(stream: &S) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Reports whether standard error supports colours.
pub(super) fn colours() -> bool {
    *COLOUR_ERR
}

/// Reports whether the locale is UTF-8.
fn unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_uppercase();
        locale.contains("UTF-8") || locale.contains("UTF8")
    })
}

/// Returns the table width: `COLUMNS` if set, else the terminal's width; `None` (unlimited) if standard
/// output is not a terminal.
pub(super) fn columns() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok();
    let set = set.and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    set.or_else(|| width(terminal_size::terminal_size_of(std::io::stdout())))
}

fn width(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    size.map(|(width, _)| usize::from(width.0))
        .filter(|n| *n > 0)
}

/// Reports whether standard error can redraw a line.
pub(super) fn live() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && !dumb && MODE.get().is_none()
}

/// Creates a bar for this number of pieces, hidden without a live terminal.
pub(super) fn bar(all: usize, pieces: &str) -> ProgressBar {
    if !live() {
        return ProgressBar::hidden();
    }
    let style = format!("{{bar:30}} {{pos}}/{{len}} {pieces}, {{eta}} left");
    let style = ProgressStyle::with_template(&style);
    let bar = ProgressBar::new(all as u64);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Replaces characters that the locale cannot encode.
fn encoded(text: &str) -> String {
    if *UNICODE {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'µ' | 'μ' => out.push('u'),
            '×' | '·' => out.push('x'),
            '–' | '—' | '−' => out.push('-'),
            '…' => out.push_str("..."),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            other if other.is_ascii() => out.push(other),
            _ => out.push('?'),
        }
    }
    out
}

/// Writes a one-line message to standard error. Further lines of external text are indented, so that they
/// cannot be mistaken for messages.
pub(crate) fn say(text: &str) {
    tell(&format!("{}\n", text.replace('\n', "\n  ")));
}

/// Writes a message to standard error, above the display if one is shown. A write error does not
/// end the run.
pub(crate) fn tell(text: &str) {
    let text = encoded(&escape::lines(text));
    let text = if colours() { message(&text) } else { text };
    let _ = aside(|| std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Formats an escaped result for standard output, in colour where enabled.
pub(super) fn result(text: &str) -> String {
    let text = if std::io::stdout().is_terminal() {
        encoded(text)
    } else {
        text.to_owned()
    };
    if *COLOUR_OUT { painted(&text) } else { text }
}

/// Hides the display during a write.
pub(super) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let display = display();
    match display.as_ref().and_then(|shown| shown.bar.as_ref()) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn in_style(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Colours a message's prefix and carets.
fn message(text: &str) -> String {
    const WORDS: [(&str, Style); 7] = [
        ("error:", RED),
        ("warning:", YELLOW),
        ("note:", GREEN),
        ("help:", CYAN),
        ("next:", CYAN),
        ("looked at", BOLD),
        ("first error:", RED),
    ];
    let mut out = String::with_capacity(text.len() + 32);
    for line in text.split_inclusive('\n') {
        let found = WORDS.iter().find_map(|(word, style)| {
            let at = line.find(word)?;
            let before = &line[..at];
            // At the beginning, or after `file:line:column: `.
            let begins = before.trim().is_empty() || before.ends_with(": ");
            begins.then_some((at, *word, *style))
        });
        match found {
            Some((at, word, style)) => {
                out.push_str(&line[..at]);
                out.push_str(&in_style(style, word));
                out.push_str(&line[at + word.len()..]);
            }
            None if line.trim_start_matches([' ', '|']).starts_with('^') => {
                let at = line.find('^').unwrap_or(0);
                let end = line.trim_end().len();
                out.push_str(&line[..at]);
                out.push_str(&in_style(RED, &line[at..end]));
                out.push_str(&line[end..]);
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Colours verdicts in table cells and the subjects of a run's summary.
fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches('\n');
        let label = ["  best     ", "  speed-up "];
        if let Some(label) = label.into_iter().find(|label| body.starts_with(label)) {
            let value = &body[label.len()..];
            let style = if value.starts_with("none") {
                RED
            } else {
                GREEN
            };
            let _ = writeln!(out, "{label}{}", in_style(style, value));
            continue;
        }
        if let Some(rest) = body.strip_prefix("next:") {
            let _ = writeln!(out, "{}{rest}", in_style(CYAN, "next:"));
            continue;
        }
        out.push_str(&verdicts(body));
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Colours a line's verdicts where they are between table columns.
fn verdicts(line: &str) -> String {
    let Some(word) = Verdict::ALL.iter().map(ToString::to_string).find(|word| {
        let at = line.find(&format!("  {word} "));
        at.is_some() || line.ends_with(&format!("  {word}"))
    }) else {
        return line.to_owned();
    };
    let style = if word == "ok" { GREEN } else { RED };
    let (from, to) = (format!("  {word}"), format!("  {}", in_style(style, &word)));
    line.replacen(&from, &to, 1)
}

/// Display of this process.
struct Display {
    bar: Option<ProgressBar>,
    began: Instant,
    /// Time of the last line of progress; messages in between do not replace it.
    told: Instant,
    status: Status,
}

static DISPLAY: Mutex<Option<Display>> = Mutex::new(None);

fn display() -> MutexGuard<'static, Option<Display>> {
    lock(&DISPLAY)
}

/// Shows the current work from shortly after the start until this is dropped: a moving line on a terminal,
/// occasional lines elsewhere.
pub(super) struct Ticker {
    over: Arc<AtomicBool>,
}

impl Ticker {
    /// Starts the display.
    pub(super) fn start() -> Self {
        let now = Instant::now();
        *display() = Some(Display {
            bar: None,
            began: now,
            told: now,
            status: Status::default(),
        });
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        // Without a thread the display is static and the work continues.
        let _ = std::thread::Builder::new()
            .name("display".to_owned())
            .spawn(move || {
                let live = live();
                while !ends.load(Ordering::Relaxed) {
                    std::thread::sleep(FRAME_INTERVAL);
                    frame(live, &ends);
                }
            });
        Self { over }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let mut display = display();
        // Under the lock, so that no frame draws a new bar after this one is cleared.
        self.over.store(true, Ordering::Relaxed);
        if let Some(Display { bar: Some(bar), .. }) = display.take() {
            bar.finish_and_clear();
        }
    }
}

/// Sets the display's status.
pub(super) fn status(status: Status) {
    if let Some(shown) = &mut *display() {
        shown.status = status;
    }
}

fn frame(live: bool, over: &AtomicBool) {
    let quiet = {
        let mut display = display();
        let Some(shown) = display.as_mut().filter(|_| !over.load(Ordering::Relaxed)) else {
            return;
        };
        if live {
            if shown.began.elapsed() >= DISPLAY_DELAY {
                shown.draw();
            }
            return;
        }
        shown.due_line(Instant::now())
    };
    // After the lock is released: `tell` locks it as well.
    if let Some(line) = quiet {
        tell(&format!("{line}\n"));
    }
}

impl Display {
    fn draw(&mut self) {
        let (status, part) = self.summary();
        // The width may have changed since the last frame.
        let width = width(terminal_size::terminal_size_of(std::io::stderr())).unwrap_or(80);
        let now = activity::now();
        let mut lines = running(&self.status.tasks, &now, SHOWN_TASKS);
        if lines.is_empty() {
            lines.push(doing(&now));
        }
        let room = width.saturating_sub(3);
        let lines = lines.iter().map(|line| {
            let line = encoded(&escape::line(line));
            format!("  {}", cut(&line, room))
        });
        let lines: Vec<String> = lines.collect();
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(1000));
        bar.set_style(style(part.is_some(), width));
        if let Some(part) = part {
            bar.set_position((part.clamp(0.0, 1.0) * 1000.0) as u64);
        }
        bar.set_message(encoded(&escape::line(&status)));
        bar.set_prefix(lines.join("\n"));
        bar.tick();
    }

    /// Returns the status with the time, and the completed fraction.
    fn summary(&self) -> (String, Option<f64>) {
        let elapsed = self.began.elapsed();
        let clock = format_duration(Duration::from_secs(elapsed.as_secs()));
        if let Some(line) = self.status.line() {
            return (format!("{clock} {line}"), self.status.completed());
        }
        let (done, all) = activity::counts();
        if all == 0 {
            return (clock, None);
        }
        let part = done as f64 / all as f64;
        let left = elapsed.as_secs_f64() * (1.0 - part) / part.max(1e-3);
        let left = match Duration::try_from_secs_f64(left) {
            Ok(left) if done > 0 => format!(", {} left", format_duration(left)),
            _ => String::new(),
        };
        (format!("{clock} {done}/{all}{left}"), Some(part))
    }

    /// Returns the line of progress that is due now, if any.
    fn due_line(&mut self, now: Instant) -> Option<String> {
        let mode = MODE.get();
        let due = now.saturating_duration_since(self.told) >= LINE_INTERVAL;
        if !due || mode == Some(&ProgressMode::None) {
            return None;
        }
        self.told = now;
        Some(self.line(mode == Some(&ProgressMode::Json)))
    }

    /// Formats the display as one log line.
    fn line(&self, json: bool) -> String {
        let now = activity::now();
        if json {
            // Before the run there are no figures of it.
            let set_up = || {
                let elapsed = self.began.elapsed().as_secs_f64();
                serde_json::json!({ "progress": { "elapsed_s": elapsed, "doing": doing(&now) } })
            };
            return self.status.json().unwrap_or_else(set_up).to_string();
        }
        let (status, _) = self.summary();
        let line = if now.is_empty() {
            status
        } else {
            format!("{status}: {}", doing(&now))
        };
        cut(&escape::line(&line), LINE_WIDTH)
    }
}

/// Returns the style: the bar on the first line, the current work on the second.
fn style(bar: bool, width: usize) -> ProgressStyle {
    let size = if width < 80 { 10 } else { 24 };
    let (green, dim) = if colours() {
        (".green", ".dim")
    } else {
        ("", "")
    };
    let bar = if bar {
        format!("{{bar:{size}{green}}} ")
    } else {
        String::new()
    };
    let template = format!("{{spinner{green}}} {bar}{{wide_msg}}\n{{prefix{dim}}}");
    // indicatif requires a colon between key and style, and none without a style.
    let template = template
        .replace("{spinner.", "{spinner:.")
        .replace("{prefix.", "{prefix:.");
    let style = ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    if *UNICODE {
        style.progress_chars("█▉▊▋▌▍▎▏░")
    } else {
        style
            .progress_chars("#>-")
            .tick_strings(&["|", "/", "-", "\\", "|"])
    }
}

#[cfg(test)]
mod tests;
