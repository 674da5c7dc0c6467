//! Results of proofs after the verdict: a stored candidate was run whole.

use super::Store;
use super::details::packed;
use super::error::{StoreError, broken};
use super::rows::config_text;
use super::run::RunId;
use super::tasks::{now, task_row};
use sqlx::types::Text;
use sqlx::{Connection as _, SqliteConnection};
use tuner_core::judgement::Judgement;
use tuner_core::record::{ConfigValues, TaskKey};

/// Tables of a time, each with one row for each verdict.
const TIME_TABLES: [&str; 3] = ["final_times", "timing_evidence", "measurements"];

async fn store_proof(
    connection: &mut SqliteConnection,
    run: RunId,
    task: TaskKey,
    config: String,
    proof: Judgement,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let task = task_row(&mut transaction, &run, &task).await?;
    let verdict: i64 = sqlx::query_scalar(
        "SELECT v.id FROM verdicts v JOIN candidates c ON c.id = v.candidate
         WHERE v.task = ? AND c.config = ? AND v.verdict = 'ok'",
    )
    .bind(task)
    .bind(config)
    .fetch_optional(&mut *transaction)
    .await?
    .ok_or_else(|| broken("the configuration that was proven has not passed in its run"))?;
    let (detail, long_detail) = packed(&proof.detail);
    // A wrong candidate loses its time: this verdict is later than all its others.
    let wrong = !proof.is_ok();
    sqlx::query(
        "UPDATE verdicts SET verdict = ?1, detail = ?2, max_error = ?3, compared = ?4,
            judged_at = iif(?5, ?6, judged_at)
         WHERE id = ?7",
    )
    .bind(Text(proof.verdict))
    .bind(detail)
    .bind(proof.max_error)
    .bind(proof.compared.map(Text))
    .bind(wrong)
    .bind(now())
    .bind(verdict)
    .execute(&mut *transaction)
    .await?;
    // The old body is of the replaced detail.
    sqlx::query("DELETE FROM long_details WHERE verdict = ?")
        .bind(verdict)
        .execute(&mut *transaction)
        .await?;
    if let Some(body) = long_detail {
        sqlx::query("INSERT INTO long_details (verdict, body) VALUES (?, ?)")
            .bind(verdict)
            .bind(body)
            .execute(&mut *transaction)
            .await?;
    }
    if wrong {
        for table in TIME_TABLES {
            let delete = format!("DELETE FROM {table} WHERE verdict = ?");
            sqlx::query(sqlx::AssertSqlSafe(delete))
                .bind(verdict)
                .execute(&mut *transaction)
                .await?;
        }
        for (ordinal, hazard) in (0_i64..).zip(&proof.hazards) {
            sqlx::query("INSERT INTO hazards (verdict, ordinal, body) VALUES (?, ?, ?)")
                .bind(verdict)
                .bind(ordinal)
                .bind(serde_json::to_string(hazard).unwrap_or_default())
                .execute(&mut *transaction)
                .await?;
        }
    }
    transaction.commit().await
}

impl Store {
    /// Stores the result of a proof of a candidate that had passed in that run: the state of its
    /// comparison, or a verdict that withdraws its time.
    ///
    /// # Errors
    /// The database cannot be written, or the configuration has not passed in that run.
    pub async fn store_proof(
        &self,
        run: &RunId,
        task: &TaskKey,
        config: &ConfigValues,
        proof: Judgement,
    ) -> Result<(), StoreError> {
        let (run, task, config) = (run.clone(), task.clone(), config_text(config));
        self.write(move |connection| Box::pin(store_proof(connection, run, task, config, proof)))
            .await
    }
}
