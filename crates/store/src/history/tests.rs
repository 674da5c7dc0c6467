use super::*;
use sqlx::Connection as _;

/// Name of the run, version of the kernel, value of the parameter, µs.
type Best<'a> = (&'a str, i64, i64, f64);

/// Time, the run since when, and the run until when with the reason.
type Period<'a> = (f64, &'a str, Option<(&'a str, &'a str)>);

async fn check(rows: &[Best<'_>], expected: &[Period<'_>]) {
    let rows: Vec<String> = (1..)
        .zip(rows)
        .map(|(task, (run, version, value, us))| {
            format!(
                "({task}, 'k', 'p', {version}, 'd', 'cuda', 'measured', '{{\"A\":{value}}}', \
                 '{version}', {us:?}, 'at {run}', 'commit {run}', 0, '{run}')"
            )
        })
        .collect();
    let sql = format!(
        "WITH best (task, kernel, problem, version, device, device_kind, timing, config, \
         template_hash, p50_us, judged_at, git_commit, dirty, run_id) AS (VALUES {}), {PERIODS}",
        rows.join(",")
    );
    let mut connection = SqliteConnection::connect(":memory:").await.unwrap();
    let periods = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut connection);
    let periods = with_ends(periods.await.unwrap());
    let got: Vec<Period<'_>> = periods
        .iter()
        .map(|period| {
            let until = period.until.as_ref().map(|until| until.run_id.as_str());
            (
                period.time_us_p50,
                period.since.run_id.as_str(),
                until.zip(period.ended_by.as_deref()),
            )
        })
        .collect();
    assert_eq!(got, expected);
}

#[tokio::test]
async fn a_slower_run_changes_nothing_and_a_faster_one_ends_the_period() {
    check(
        &[("a", 1, 1, 5.0), ("b", 1, 2, 6.0), ("c", 1, 3, 4.0)],
        &[
            (5.0, "a", Some(("c", "a faster configuration"))),
            (4.0, "c", None),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_same_configuration_measured_faster_stays_the_best() {
    check(&[("a", 1, 1, 5.0), ("b", 1, 1, 4.5)], &[(4.5, "a", None)]).await;
}

#[tokio::test]
async fn an_edited_template_ends_a_period_and_putting_it_back_restores_the_old_best() {
    let other = "another version of the kernel";
    check(
        &[("a", 1, 1, 5.0), ("b", 2, 1, 7.0), ("c", 1, 2, 6.0)],
        &[
            (5.0, "a", Some(("b", other))),
            (7.0, "b", Some(("c", other))),
            (5.0, "c", None),
        ],
    )
    .await;
}
