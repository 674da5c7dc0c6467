//! Leaderboard query: the best measurement of every candidate, ranked within kernel, problem, device and
//! kind of time.
//!
//! Only the newest version of a kernel ranks: within each group, that of the latest run with a time. An
//! edited template, changed sizes or another recorded file create a new version.

use super::baselines::peer;
use super::board::Board;
use super::rank::{Timed, places};
use super::rows::{
    Config, SEARCH_COLUMNS, compared_from_row, config_from_text, hash_from_bytes, trial_from_row,
};
use super::run::RecordingSource;
use super::times::{DefaultTime, TimeRow, best_times, default_time, predicted_interval};
use sqlx::query::QueryAs;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, FromRow, Row as _, SqlSafeStr, Sqlite, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::record::{
    ConfigValues, Definition, DeviceKind, LeaderboardRow, TaskKey, TimingKind, Verdict,
};
use tuner_core::target::ComputeTarget;
use tuner_core::units::Seed;

/// Device selection of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceFilter {
    /// The stored name, ignoring case.
    Name(String),
    /// All of a kind.
    Kind(DeviceKind),
    /// Runs with this resolved selector, such as `cuda:1`.
    Selector(String),
    /// Runs on this recorded file, by content or by path.
    Recording(RecordingSource),
}

/// Selection and limits of a leaderboard.
#[derive(Debug, Clone, Default)]
pub struct LeaderboardQuery {
    /// One kernel; `None`: all.
    pub kernel: Option<String>,
    /// Devices; `None`: all.
    pub device: Option<DeviceFilter>,
    /// One problem; `None`: all.
    pub problem: Option<String>,
    /// Maximum rows of a group; `None`: all.
    pub top: Option<usize>,
    /// Kinds of time; all when empty.
    pub timings: Vec<TimingKind>,
    /// Only results of trees at these commits; all when `None`.
    pub commits: Option<Vec<String>>,
    /// Include code sizes in rows.
    pub code_sizes: bool,
    /// Omits configurations that the constraints exclude, if these were edited between runs; `None`: ranks
    /// all.
    pub admitted: Option<Admitted>,
}

/// Returns a function that reports whether a board's constraints admit a configuration.
pub type Admitted = fn(&Board) -> Admits;

/// A function that reports whether constraints admit a configuration.
pub type Admits = Box<dyn Fn(&ConfigValues) -> bool + Send>;

impl LeaderboardQuery {
    /// Returns the commits as a query parameter.
    fn commits_text(&self) -> Option<String> {
        let commits = self.commits.as_ref()?;
        Some(serde_json::json!(commits).to_string())
    }

    /// Returns the rule for the configurations of a board whose constraints were edited between runs; `None` if all
    /// are admitted.
    pub(super) fn admits(&self, board: &Board, redefined: bool) -> Option<Admits> {
        let admitted = self.admitted.filter(|_| redefined)?;
        Some(admitted(board))
    }
}

/// Returns the number of a target such as `sm_90a`.
fn capability(arch: &str) -> Option<u32> {
    arch.parse().ok().map(|target: ComputeTarget| target.cc)
}

/// Number of candidates of a kernel, problem and device with a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictCount {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of candidates.
    pub count: u64,
}

#[derive(sqlx::FromRow)]
pub(super) struct GroupRow {
    kernel: String,
    problem: String,
    problem_id: i64,
    #[sqlx(try_from = "Config")]
    sizes: ConfigValues,
    device: String,
    device_id: i64,
    #[sqlx(try_from = "&'a str")]
    device_kind: DeviceKind,
    arch: String,
    #[sqlx(try_from = "Config")]
    environment: ConfigValues,
    timing: Option<Text<TimingKind>>,
    #[sqlx(json)]
    definition: Definition,
    pub(super) default_config: Option<String>,
    space_path: Option<String>,
    template_hash: Option<String>,
    reference_hash: Option<String>,
    /// Earlier runs of this version had other constraints.
    #[sqlx(skip)]
    pub(super) redefined: bool,
}

impl GroupRow {
    fn key(&self) -> TaskKey {
        TaskKey {
            kernel: self.kernel.clone(),
            problem: self.problem.clone(),
            device: self.device.clone(),
        }
    }
}

const GROUPS: &str = "SELECT k.name AS kernel, p.name AS problem, p.id AS problem_id, p.sizes,
        d.name AS device, d.id AS device_id, d.kind AS device_kind, d.arch, d.environment,
        (SELECT m.kind FROM verdicts v JOIN measurements m ON m.verdict = v.id
         JOIN provenance o ON o.id = v.provenance
         WHERE v.task = t.id AND v.verdict = 'ok'
           AND (?8 IS NULL OR o.git_commit IN (SELECT value FROM json_each(?8))) LIMIT 1) AS timing,
        f.body AS definition, t.default_config, t.space_path, k.template_hash, k.reference_hash
     FROM tasks t
     JOIN runs r ON r.id = t.run
     JOIN devices d ON d.id = r.device
     JOIN problems p ON p.id = t.problem
     JOIN kernels k ON k.id = p.kernel
     JOIN definitions f ON f.id = t.definition
     WHERE (?1 IS NULL OR k.name = ?1) AND (?2 IS NULL OR p.name = ?2)
       AND (?3 IS NULL OR d.name = ?3 COLLATE NOCASE) AND (?4 IS NULL OR d.kind = ?4)
       AND (?5 IS NULL OR r.selector = ?5)
       AND (?6 IS NULL OR r.recording_hash = ?6 OR r.recording_path = ?7)
       AND NOT EXISTS (SELECT 1 FROM change_runs c WHERE c.run = r.name)
       AND EXISTS (SELECT 1 FROM verdicts v JOIN provenance o ON o.id = v.provenance
                   WHERE v.task = t.id
                   AND (?8 IS NULL OR o.git_commit IN (SELECT value FROM json_each(?8))))
     ORDER BY t.id DESC";

/// Returns the tasks that the query selects, newest first.
async fn groups(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<GroupRow>, sqlx::Error> {
    filtered(GROUPS, query)
        .bind(query.commits_text())
        .fetch_all(connection)
        .await
}

/// Binds parameters 1 to 7 of a statement to the query's kernel, problem and device.
pub(super) fn filtered<'q, T>(
    sql: impl SqlSafeStr,
    query: &'q LeaderboardQuery,
) -> QueryAs<'q, Sqlite, T, SqliteArguments>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    let (mut name, mut kind, mut selector, mut recording) = (None, None, None, None);
    match &query.device {
        None => {}
        Some(DeviceFilter::Name(wanted)) => name = Some(wanted),
        Some(DeviceFilter::Kind(wanted)) => kind = Some(Text(*wanted)),
        Some(DeviceFilter::Selector(wanted)) => selector = Some(wanted),
        Some(DeviceFilter::Recording(wanted)) => recording = Some(wanted),
    }
    sqlx::query_as(sql)
        .bind(&query.kernel)
        .bind(&query.problem)
        .bind(name)
        .bind(kind)
        .bind(selector)
        .bind(recording.map(|source| source.hash.as_str()))
        .bind(recording.map(|source| source.path.to_string_lossy()))
}

/// Returns the newest version with a time of each kernel, problem, device and kind of time, in that
/// order.
pub(super) async fn newest(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<GroupRow>, sqlx::Error> {
    // Groups are sorted newest first, so the first entry of a key is kept.
    let mut newest: BTreeMap<_, GroupRow> = BTreeMap::new();
    let mut versions = BTreeMap::new();
    for group in groups(connection, query).await? {
        let place = (group.key(), group.device_kind.name());
        let version = (place.clone(), group.template_hash.clone());
        let (reference, definition) = versions
            .entry(version)
            .or_insert_with(|| (group.reference_hash.clone(), group.definition.clone()));
        // The reference was edited since the comparison: the result is no longer known to be correct, even if
        // no candidate passed the new one.
        if *reference != group.reference_hash {
            continue;
        }
        let Some(Text(timing)) = group.timing else {
            continue;
        };
        if !query.timings.is_empty() && !query.timings.contains(&timing) {
            continue;
        }
        let redefined = !group.definition.has_rules_of(definition);
        let kept = newest.entry((place, timing)).or_insert_with(|| GroupRow {
            // The constraints of a run without a passing candidate apply too.
            definition: definition.clone(),
            ..group
        });
        kept.redefined |= redefined;
    }
    Ok(newest.into_values().collect())
}

/// Ranks every group that the query selects; sorted by kernel, problem, device, kind.
pub(super) async fn boards(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<Board>, sqlx::Error> {
    let mut boards = Vec::new();
    for group in newest(connection, query).await? {
        let default = group.default_config.clone();
        let redefined = group.redefined;
        let mut board = described(group);
        let (problem, device) = (board.problem_id, board.device_id);
        // The rank of a row depends only on the rows above it; a commit has few results.
        let limit = query.top.filter(|_| query.commits.is_none());
        let admits = query.admits(&board, redefined);
        // Any number of the first rows may be excluded.
        let read = limit.filter(|_| admits.is_none());
        let commits = query.commits_text();
        let mut times =
            best_times(connection, problem, device, board.timing, commits, read).await?;
        if let Some(admits) = admits {
            let admitted = times
                .into_iter()
                .filter(|time| config_from_text(&time.config).is_ok_and(|config| admits(&config)));
            times = admitted.take(limit.unwrap_or(usize::MAX)).collect();
        }
        let default = default_time(connection, &board, &times, default, limit).await?;
        add_rows(connection, &mut board, &times, default, query).await?;
        boards.push(board);
    }
    Ok(boards)
}

/// Returns the context of a board's best row for an export; `None` without a row.
pub(super) async fn entry(
    connection: &mut SqliteConnection,
    board: &Board,
) -> Result<Option<Entry>, sqlx::Error> {
    let Some(best) = board.rows.first() else {
        return Ok(None);
    };
    let (problem, device) = (board.problem_id, board.device_id);
    // Without the query's limits: exports choose by all times, using those of the search, which all rows
    // have.
    let times = best_times(connection, problem, device, board.timing, None, None).await?;
    let times = times
        .iter()
        .filter_map(|time| Some((config_from_text(&time.config).ok()?, time.search_time())));
    Ok(Some(Entry {
        best: best.clone(),
        sizes: board.sizes.clone(),
        environment: board.environment.clone(),
        cc: capability(&board.arch),
        definition: board.definition.clone(),
        driver: board.driver.clone(),
        times: times.collect(),
    }))
}

/// Adds the rows of a board's first times, as many as the query requests.
async fn add_rows(
    connection: &mut SqliteConnection,
    board: &mut Board,
    times: &[TimeRow],
    default: Option<DefaultTime>,
    query: &LeaderboardQuery,
) -> Result<(), sqlx::Error> {
    let top = query.top.unwrap_or(usize::MAX);
    // Narrow rows: a board may have a million candidates.
    let timed: Vec<Timed> = times.iter().map(|time| time.timed(board.timing)).collect();
    let peer = peer(connection, board.problem_id, board.device_id, board.timing).await?;
    // Ranks and ties need all times; full rows are read only for the shown ones.
    for (time, place) in times.iter().zip(places(&timed)).take(top) {
        let (driver, mut row) = full_row(connection, board, time.verdict).await?;
        row.code_bytes = row.code_bytes.filter(|_| query.code_sizes);
        row.rank = place.rank;
        row.tied_with_best = place.tied_with_best;
        row.search_us = time.search_us;
        row.speedup_vs_default = default.map(|default| default.speedup(time));
        row.speedup_vs_baseline = peer
            .as_ref()
            .and_then(|peer| peer.speedup(row.time_us_p50, time.reference()));
        if board.rows.is_empty() {
            board.driver = driver;
        }
        board.rows.push(row);
        board.candidates.push(hash_from_bytes(&time.hash));
    }
    Ok(())
}

/// Builds a group's board without its rows.
pub(super) fn described(group: GroupRow) -> Board {
    let default = group.default_config.as_deref();
    Board {
        key: group.key(),
        device_kind: group.device_kind,
        timing: group.timing.map_or(TimingKind::Measured, |timing| timing.0),
        sizes: group.sizes,
        environment: group.environment,
        arch: group.arch,
        definition: group.definition,
        driver: None,
        default_config: default.and_then(|text| config_from_text(text).ok()),
        space_path: group.space_path.map(PathBuf::from),
        reference_hash: group.reference_hash,
        rows: Vec::new(),
        candidates: Vec::new(),
        problem_id: group.problem_id,
        device_id: group.device_id,
    }
}

/// Reads a row of the leaderboard and its driver; the caller sets rank and ratios.
async fn full_row(
    connection: &mut SqliteConnection,
    board: &Board,
    verdict: i64,
) -> Result<(Option<String>, LeaderboardRow), sqlx::Error> {
    let row = sqlx::query(
        "SELECT c.config, m.p50_us, m.p90_us, m.ci_low_us, m.ci_high_us, m.sample_count,
            o.git_commit, o.dirty, o.diff_hash, o.driver, k.template_hash, x.cubin_hash, x.registers,
            x.spill_bytes, x.shared_bytes, nullif(x.sass_bytes, 0) AS code_bytes, v.max_error,
            v.compared, r.seed, r.name, v.judged_at, e.gate,
            w.energy_mj, w.energy_low_mj, w.energy_high_mj
         FROM verdicts v
         JOIN times m ON m.verdict = v.id
         JOIN candidates c ON c.id = v.candidate
         JOIN problems p ON p.id = c.problem
         JOIN kernels k ON k.id = p.kernel
         JOIN tasks t ON t.id = v.task
         JOIN runs r ON r.id = t.run
         JOIN provenance o ON o.id = v.provenance
         LEFT JOIN compilations x ON x.candidate = c.id
         LEFT JOIN timing_evidence e ON e.verdict = v.id AND e.stage = m.stage
         LEFT JOIN timing_evidence w ON w.verdict = v.id AND w.stage = 'race'
         WHERE v.id = ?",
    )
    .bind(verdict)
    .fetch_one(&mut *connection)
    .await?;
    // Recorded times are from unknown sources: no local commit or hash applies.
    let ours = |column: &str| -> Result<Option<String>, sqlx::Error> {
        let text: Option<String> = row.try_get(column)?;
        Ok(text.filter(|_| board.device_kind != DeviceKind::Replay))
    };
    let commit = ours("git_commit")?;
    let dirty = row.try_get("dirty")?;
    let low: Option<f64> = row.try_get("energy_low_mj")?;
    let high: Option<f64> = row.try_get("energy_high_mj")?;
    let leaderboard_row = LeaderboardRow {
        rank: 0,
        kernel: board.key.kernel.clone(),
        problem: board.key.problem.clone(),
        device: board.key.device.clone(),
        device_kind: board.device_kind,
        timing: board.timing,
        config: row.try_get::<Config, _>("config")?.into(),
        time_us_p50: row.try_get("p50_us")?,
        time_us_p90: row.try_get("p90_us")?,
        ci95_us: match board.timing {
            TimingKind::Predicted => predicted_interval(connection, verdict).await?,
            TimingKind::Measured | TimingKind::Recorded => {
                Some([row.try_get("ci_low_us")?, row.try_get("ci_high_us")?])
            }
        },
        samples: row.try_get("sample_count")?,
        tied_with_best: false,
        speedup_vs_default: None,
        speedup_vs_baseline: None,
        dirty: commit.is_some().then_some(dirty),
        diff_hash: ours("diff_hash")?,
        stale: None,
        commit,
        template_hash: ours("template_hash")?,
        cubin_hash: ours("cubin_hash")?,
        registers: row.try_get("registers")?,
        spill_bytes: row.try_get("spill_bytes")?,
        shared_bytes: row.try_get("shared_bytes")?,
        max_error: row.try_get("max_error")?,
        compared: compared_from_row(&row)?,
        seed: Seed(row.try_get::<Text<u64>, _>("seed")?.0),
        run_id: row.try_get("name")?,
        measured_at: row.try_get("judged_at")?,
        gate: row.try_get("gate")?,
        code_bytes: row.try_get("code_bytes")?,
        energy_mj: row.try_get("energy_mj")?,
        energy_ci95_mj: low.zip(high).map(|(low, high)| [low, high]),
        search_us: None,
    };
    Ok((row.try_get("driver")?, leaderboard_row))
}

/// Counts the verdicts of the newest version of each kernel, problem and device; a candidate counts
/// once for each verdict.
pub(super) async fn verdict_counts(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<VerdictCount>, sqlx::Error> {
    let mut newest = BTreeMap::new();
    for group in groups(connection, query).await? {
        let place = (group.key(), group.device_kind.name());
        newest
            .entry(place)
            .or_insert((group.problem_id, group.device_id));
    }
    let mut counts = Vec::new();
    for ((key, _), (problem, device)) in newest {
        let rows: Vec<(Text<Verdict>, u64)> = sqlx::query_as(
            "SELECT v.verdict, count(DISTINCT v.candidate) FROM tasks t
             JOIN runs r ON r.id = t.run JOIN verdicts v ON v.task = t.id
             WHERE t.problem = ? AND r.device = ? GROUP BY v.verdict",
        )
        .bind(problem)
        .bind(device)
        .fetch_all(&mut *connection)
        .await?;
        let of_verdict = |(verdict, count): (Text<Verdict>, u64)| VerdictCount {
            key: key.clone(),
            verdict: verdict.0,
            count,
        };
        let mut group: Vec<VerdictCount> = rows.into_iter().map(of_verdict).collect();
        group.sort_by_key(|count| count.verdict);
        counts.extend(group);
    }
    Ok(counts)
}

/// Returns all candidates, see [`super::Store::candidates`], in the order in which they were first
/// judged.
pub(super) async fn candidates(
    connection: &mut SqliteConnection,
    board: &Board,
) -> Result<Vec<StoredTrial>, sqlx::Error> {
    let sql = format!(
        "{SEARCH_COLUMNS} JOIN runs r ON r.id = t.run
         WHERE c.problem = ? AND r.device = ? AND (m.kind IS NULL OR m.kind = ?)
         ORDER BY c.id, v.verdict <> 'ok' OR EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id),
             p50_us, iif(m.kind IS NULL, -v.id, v.id)"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(board.problem_id)
        .bind(board.device_id)
        .bind(Text(board.timing))
        .fetch_all(connection)
        .await?;
    // Rows of a candidate are sorted by validity, so its first one counts.
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for row in &rows {
        let (_, trial) = trial_from_row(row)?;
        if seen.insert(trial.candidate_hash.clone()) {
            let judged_at = row.try_get("judged_at")?;
            candidates.push(StoredTrial { trial, judged_at });
        }
    }
    Ok(candidates)
}
