//! `tuner leaderboard --history` and `--at`: periods of the best, and the leaderboard of a commit.

use super::CliError;
use super::output::{self, Column, Format, number, or};
use tuner_core::provenance;
use tuner_core::record::assignments;
use tuner_store::{BestPeriod, Moment, Store};

/// Returns the commits whose results were present at a commit: itself and its ancestors. Without git, or
/// for an unknown commit, returns the stored commits with this prefix.
pub(super) async fn commits_at(store: &Store, name: &str) -> Result<Vec<String>, CliError> {
    let known = store.commits().await?;
    let folder = std::env::current_dir()?;
    if let Some((commit, contained)) = provenance::commits_of(&folder, name, &known) {
        if contained.is_empty() {
            say!(
                "no result is of commit {} or of one it contains",
                short(&commit)
            );
        }
        return Ok(contained);
    }
    // Git abbreviates a hash to at least four digits.
    let digits = name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let named: Vec<String> = known
        .iter()
        .filter(|commit| digits && commit.starts_with(&name.to_ascii_lowercase()))
        .cloned()
        .collect();
    if named.is_empty() {
        let listed: Vec<&str> = known.iter().map(|commit| short(commit)).collect();
        let listed = (!listed.is_empty()).then(|| listed.join(", "));
        refuse!(
            "--at {name}: git knows no such commit here, and no result is of one; results are of {}",
            or("no commit", listed)
        );
    }
    Ok(named)
}

/// Shortens a commit hash for display.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn moment(moment: &Moment) -> String {
    let commit = match (&moment.commit, moment.dirty) {
        (Some(commit), Some(true)) => format!("{}+", short(commit)),
        (Some(commit), _) => short(commit).to_owned(),
        (None, _) => "no commit".to_owned(),
    };
    format!(
        "{} at {commit}",
        moment.at.get(..16).unwrap_or(&moment.at).replace('T', " ")
    )
}

const COLUMNS: [Column<BestPeriod>; 11] = [
    ("kernel", |period| period.kernel.clone()),
    ("problem", |period| period.problem.clone()),
    ("device", |period| period.device.clone()),
    ("timing", |period| period.timing.to_string()),
    ("time_us_p50", |period| format!("{:.3}", period.time_us_p50)),
    ("best since", |period| moment(&period.since)),
    ("until", |period| {
        or("still", period.until.as_ref().map(moment))
    }),
    ("ended by", |period| or("-", period.ended_by.as_ref())),
    ("next_us_p50", |period| number("-", period.next_us_p50, 3)),
    ("run", |period| period.since.run_id.clone()),
    ("config", |period| assignments(&period.config, " ")),
];

/// Formats the periods.
pub(super) fn text(format: Format, periods: &[BestPeriod]) -> Result<String, CliError> {
    if periods.is_empty() && format == Format::Table {
        return Ok("no candidate passed\n".to_owned());
    }
    Ok(output::values(format, &COLUMNS, periods)?)
}
