//! What was best when: the reigns of configurations, and the course of each run.

use super::begin::kind_from_name;
use super::error::StoreError;
use super::leaderboard::{Board, LeaderboardQuery, filtered};
use super::rows::{config_from_text, timing_from_name, timing_name};
use serde::Serialize;
use sqlx::{Row as _, SqliteConnection};
use std::collections::BTreeMap;
use std::path::Path;
use tuner_core::record::{ConfigValues, DeviceKind, TimingKind, Verdict, config_as_object};

/// A moment in the history of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// When the result was judged, RFC 3339 UTC.
    pub at: String,
    /// Commit of the template's tree; null outside git and for recorded results.
    pub commit: Option<String>,
    /// That tree was dirty.
    pub dirty: Option<bool>,
    /// The run.
    pub run_id: String,
}

/// The time during which one configuration was the best of its kernel, problem and device. Counted
/// from the end of one run to the end of another: what was best for a second within a run is no
/// news.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestPeriod {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// Kind of device.
    pub device_kind: DeviceKind,
    /// How the times came to be.
    pub timing: TimingKind,
    /// The configuration.
    #[serde(with = "config_as_object")]
    pub config: ConfigValues,
    /// Its best median while it reigned, µs.
    pub time_us_p50: f64,
    /// Version of the template, or of the recording.
    pub template_hash: String,
    /// When it became the best.
    pub since: Moment,
    /// When it stopped being the best; null while it is.
    pub until: Option<Moment>,
    /// Why it stopped: a faster configuration, or another version of the kernel.
    pub ended_by: Option<&'static str>,
    /// Median of what came after it, µs.
    pub next_us_p50: Option<f64>,
}

/// The best result of one task of one run.
#[derive(sqlx::FromRow)]
struct BestOfTask {
    kernel: String,
    version: String,
    problem: String,
    problem_id: i64,
    device: String,
    device_kind: String,
    timing: String,
    config: String,
    p50_us: f64,
    judged_at: String,
    git_commit: Option<String>,
    dirty: bool,
    run_name: String,
}

// SQLite takes the other columns of a group from the row that holds its minimum.
const BEST_OF_TASKS: &str = "SELECT k.name AS kernel,
        coalesce(k.template_hash, k.version) AS version, p.name AS problem,
        p.id AS problem_id, d.name AS device, d.kind AS device_kind, m.kind AS timing, c.config,
        min(m.p50_us) AS p50_us, v.judged_at, o.git_commit, o.dirty <> 0 AS dirty,
        r.name AS run_name
     FROM verdicts v
     JOIN times m ON m.verdict = v.id
     JOIN candidates c ON c.id = v.candidate
     JOIN provenance o ON o.id = v.provenance
     JOIN tasks t ON t.id = v.task
     JOIN runs r ON r.id = t.run
     JOIN devices d ON d.id = r.device
     JOIN problems p ON p.id = t.problem
     JOIN kernels k ON k.id = p.kernel
     WHERE v.verdict = 'ok' AND (?1 IS NULL OR k.name = ?1) AND (?2 IS NULL OR p.name = ?2)
       AND (?3 IS NULL OR d.name = ?3 COLLATE NOCASE) AND (?4 IS NULL OR d.kind = ?4)
       AND (?5 IS NULL OR r.selector = ?5)
       AND (?6 IS NULL OR r.recording_hash = ?6 OR r.recording_path = ?7)
     GROUP BY v.task, m.kind ORDER BY v.task";

/// See [`super::Store::history`].
pub(super) async fn reigns(
    path: &Path,
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<BestPeriod>, StoreError> {
    let rows: Vec<BestOfTask> = filtered(BEST_OF_TASKS, query)
        .fetch_all(connection)
        .await
        .map_err(|error| StoreError::from_sqlx(path, &error))?;
    let mut groups: BTreeMap<[String; 5], Vec<BestOfTask>> = BTreeMap::new();
    for row in rows {
        let key = [
            &row.kernel,
            &row.problem,
            &row.device,
            &row.device_kind,
            &row.timing,
        ];
        groups.entry(key.map(Clone::clone)).or_default().push(row);
    }
    Ok(groups.into_values().flat_map(succession).collect())
}

/// The reigns of one group from the best results of its runs in order.
fn succession(rows: Vec<BestOfTask>) -> Vec<BestPeriod> {
    // The best of each version: a template that is put back finds its old results again.
    let mut best: BTreeMap<i64, usize> = BTreeMap::new();
    let mut reigns: Vec<BestPeriod> = Vec::new();
    let mut current: Option<(i64, usize)> = None;
    for (index, row) in rows.iter().enumerate() {
        let champion = best.entry(row.problem_id).or_insert(index);
        if row.p50_us < rows[*champion].p50_us {
            *champion = index;
        }
        let next = (row.problem_id, *champion);
        let same = current.is_some_and(|(problem, old)| {
            problem == next.0 && rows[old].config == rows[next.1].config
        });
        if same {
            if let Some(reign) = reigns.last_mut() {
                reign.time_us_p50 = rows[next.1].p50_us;
            }
        } else {
            let ended_by = match current {
                Some((problem, _)) if problem != next.0 => "another version of the kernel",
                _ => "a faster configuration",
            };
            if let Some(reign) = reigns.last_mut() {
                reign.until = Some(moment(row));
                reign.ended_by = Some(ended_by);
                reign.next_us_p50 = Some(rows[next.1].p50_us);
            }
            reigns.extend(reign(&rows[next.1], moment(row)));
        }
        current = Some(next);
    }
    reigns
}

fn moment(row: &BestOfTask) -> Moment {
    let commit = row.git_commit.clone();
    Moment {
        at: row.judged_at.clone(),
        dirty: commit.is_some().then_some(row.dirty),
        commit,
        run_id: row.run_name.clone(),
    }
}

fn reign(row: &BestOfTask, since: Moment) -> Option<BestPeriod> {
    Some(BestPeriod {
        kernel: row.kernel.clone(),
        problem: row.problem.clone(),
        device: row.device.clone(),
        device_kind: kind_from_name(&row.device_kind)?,
        timing: timing_from_name(&row.timing)?,
        config: config_from_text(&row.config).ok()?,
        time_us_p50: row.p50_us,
        template_hash: row.version.clone(),
        since,
        until: None,
        ended_by: None,
        next_us_p50: None,
    })
}

/// What a report says of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// The kernels it tuned, in order.
    pub kernels: Vec<String>,
    /// The problems it tuned, in order.
    pub problems: Vec<String>,
    /// The resolved `--device`.
    pub selector: String,
    /// Hash of the recorded file, on replay.
    pub recording_hash: Option<String>,
    /// Its seed.
    pub seed: String,
    /// The search strategy.
    pub strategy: String,
    /// Its settings.
    pub settings: serde_json::Value,
    /// `running`, `interrupted`, `failed` or `finished`.
    pub state: String,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Commit, host and versions of its results, each as the first result has it.
    pub commit: Option<String>,
    /// That tree was dirty.
    pub dirty: bool,
    /// SHA-256 of what made it dirty.
    pub diff_hash: Option<String>,
    /// The host.
    pub host: String,
    /// Version of this program.
    pub tuner_version: String,
    /// GPU driver version.
    pub driver: Option<String>,
    /// NVRTC version.
    pub nvrtc_version: Option<String>,
}

/// One judged candidate in the course of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The judgement.
    pub verdict: Verdict,
    /// Median, µs, where it has a time.
    pub p50_us: Option<f64>,
    /// Device-side cost, µs.
    pub charged_us: u64,
}

/// One run on a board's kernel, problem and device.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeLine {
    /// The run.
    pub run: RunFacts,
    /// Its trials, in the order they were told to the search.
    pub steps: Vec<Step>,
}

/// See [`super::Store::time_lines`].
pub(super) async fn time_lines(
    path: &Path,
    connection: &mut SqliteConnection,
    board: &Board,
) -> Result<Vec<TimeLine>, StoreError> {
    let fail = |error: sqlx::Error| StoreError::from_sqlx(path, &error);
    let tasks = sqlx::query(
        "SELECT t.id AS task,
            (SELECT json_group_array(json_array(k.name, p.name) ORDER BY s.id) FROM tasks s
             JOIN problems p ON p.id = s.problem JOIN kernels k ON k.id = p.kernel
             WHERE s.run = r.id) AS all_tasks, r.name, r.recording_hash, r.selector, r.seed, r.strategy, r.settings, r.state,
            r.started_at, r.ended_at, o.git_commit, o.dirty, o.diff_hash, o.host, o.tuner_version,
            o.driver, o.nvrtc_version
         FROM tasks t JOIN runs r ON r.id = t.run
         JOIN provenance o ON o.id = (SELECT provenance FROM verdicts WHERE task = t.id LIMIT 1)
         WHERE t.problem = ? AND r.device = ? ORDER BY t.id",
    )
    .bind(board.problem_id)
    .bind(board.device_id)
    .fetch_all(&mut *connection)
    .await
    .map_err(fail)?;
    let mut lines = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let run = run_facts(task).map_err(fail)?;
        let id: i64 = task.try_get("task").map_err(fail)?;
        let steps: Vec<(String, Option<f64>, i64)> = sqlx::query_as(
            "SELECT v.verdict, iif(v.verdict = 'ok' AND m.kind = ?2, m.p50_us, NULL), v.charged_us
             FROM verdicts v LEFT JOIN times m ON m.verdict = v.id
             WHERE v.task = ?1 ORDER BY v.sequence IS NULL, v.sequence, v.id",
        )
        .bind(id)
        .bind(timing_name(board.timing))
        .fetch_all(&mut *connection)
        .await
        .map_err(fail)?;
        let steps = steps.into_iter().filter_map(|(verdict, p50_us, charged)| {
            Some(Step {
                verdict: Verdict::from_name(&verdict)?,
                p50_us,
                charged_us: u64::try_from(charged).unwrap_or(0),
            })
        });
        lines.push(TimeLine {
            run,
            steps: steps.collect(),
        });
    }
    Ok(lines)
}

fn run_facts(row: &sqlx::sqlite::SqliteRow) -> Result<RunFacts, sqlx::Error> {
    let settings: String = row.try_get("settings")?;
    let tasks: String = row.try_get("all_tasks")?;
    let tasks: Vec<[String; 2]> = serde_json::from_str(&tasks).unwrap_or_default();
    let (mut kernels, mut problems) = (Vec::new(), Vec::new());
    for [kernel, problem] in tasks {
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    Ok(RunFacts {
        kernels,
        problems,
        name: row.try_get("name")?,
        selector: row.try_get("selector")?,
        recording_hash: row.try_get("recording_hash")?,
        seed: row.try_get("seed")?,
        strategy: row.try_get("strategy")?,
        settings: serde_json::from_str(&settings).unwrap_or_default(),
        state: row.try_get("state")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        commit: row.try_get("git_commit")?,
        dirty: row.try_get::<i64, _>("dirty")? != 0,
        diff_hash: row.try_get("diff_hash")?,
        host: row.try_get("host")?,
        tuner_version: row.try_get("tuner_version")?,
        driver: row.try_get("driver")?,
        nvrtc_version: row.try_get("nvrtc_version")?,
    })
}

/// See [`super::Store::commits`].
pub(super) async fn commits(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<Vec<String>, StoreError> {
    sqlx::query_scalar(
        "SELECT DISTINCT git_commit FROM provenance WHERE git_commit IS NOT NULL ORDER BY 1",
    )
    .fetch_all(connection)
    .await
    .map_err(|error| StoreError::from_sqlx(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: &str, version: i64, config: &str, us: f64) -> BestOfTask {
        BestOfTask {
            kernel: "k".to_owned(),
            version: version.to_string(),
            problem: "p".to_owned(),
            problem_id: version,
            device: "d".to_owned(),
            device_kind: "cuda".to_owned(),
            timing: "measured".to_owned(),
            config: format!("{{\"A\":{config}}}"),
            p50_us: us,
            judged_at: format!("at {run}"),
            git_commit: Some(format!("commit {run}")),
            dirty: false,
            run_name: run.to_owned(),
        }
    }

    /// Time, the run since when, and the run until when with the reason.
    type Reigned<'a> = (f64, &'a str, Option<(&'a str, &'a str)>);

    fn check(rows: Vec<BestOfTask>, expected: &[Reigned<'_>]) {
        let reigns = succession(rows);
        let got: Vec<Reigned<'_>> = reigns
            .iter()
            .map(|reign| {
                let until = reign.until.as_ref().map(|until| until.run_id.as_str());
                (
                    reign.time_us_p50,
                    reign.since.run_id.as_str(),
                    until.zip(reign.ended_by),
                )
            })
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_slower_run_changes_nothing_and_a_faster_one_ends_the_reign() {
        check(
            vec![
                row("a", 1, "1", 5.0),
                row("b", 1, "2", 6.0),
                row("c", 1, "3", 4.0),
            ],
            &[
                (5.0, "a", Some(("c", "a faster configuration"))),
                (4.0, "c", None),
            ],
        );
    }

    #[test]
    fn the_same_configuration_measured_faster_goes_on_reigning() {
        check(
            vec![row("a", 1, "1", 5.0), row("b", 1, "1", 4.5)],
            &[(4.5, "a", None)],
        );
    }

    #[test]
    fn an_edited_template_ends_a_reign_and_putting_it_back_restores_the_old_best() {
        let other = "another version of the kernel";
        check(
            vec![
                row("a", 1, "1", 5.0),
                row("b", 2, "1", 7.0),
                row("c", 1, "2", 6.0),
            ],
            &[
                (5.0, "a", Some(("b", other))),
                (7.0, "b", Some(("c", other))),
                (5.0, "c", None),
            ],
        );
    }
}
