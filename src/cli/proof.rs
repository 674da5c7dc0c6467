//! Proofs of results before an export: the best result of a board is run whole first.

use super::CliError;
use super::results::{block_on, board_name};
use std::collections::BTreeSet;
use std::path::Path;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, DeviceKind, LeaderboardRow};
use tuner_engine::job::{JobError, Prepared, ProveBudget, Request};
use tuner_engine::{Proof, ProofOutcome};
use tuner_store::{Board, LeaderboardQuery, RunId, Store};

/// Options of exporting commands.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct ProofOptions {
    /// Run the best candidate whole on the timed problem before it is written, on a virtual GPU and if the
    /// run did not, provided that this takes at most this number of lane instructions; 0: never [default:
    /// 3e10]
    #[arg(long, value_name = "N")]
    prove_budget: Option<ProveBudget>,

    /// Write results that were compared with the reference on smaller problems only, if there are no
    /// others
    #[arg(long)]
    allow_uncompared: bool,
}

impl ProofOptions {
    /// Proves the best row of each board that the query selects and `leaves` accepts. Stores the
    /// outcome; a wrong result is withdrawn, and the next best is proven.
    ///
    /// # Errors
    /// The database cannot be read, or a wrong result cannot be withdrawn.
    pub(super) fn prove(
        &self,
        db: &Path,
        query: &LeaderboardQuery,
        leaves: impl Fn(&Board) -> bool,
    ) -> Result<(), CliError> {
        let budget = self.prove_budget.unwrap_or_default();
        if budget.get() == 0 {
            return Ok(());
        }
        let query = LeaderboardQuery {
            top: Some(1),
            ..query.clone()
        };
        // A proof that cannot be made changes nothing: its row would be selected again forever.
        let mut tried = BTreeSet::new();
        loop {
            let boards = block_on(async {
                let store = Store::open_read(db).await?;
                let boards = store.boards(&query).await?;
                store.close().await?;
                Ok(boards)
            })?;
            let next = boards.iter().find_map(|board| {
                let row = board.rows.first().filter(|row| lacks_proof(board, row))?;
                let candidate = board.candidates.first()?.to_string();
                // Problems whose sizes are arguments have one candidate each, and need a proof each.
                let proof = (board.key.kernel.clone(), board_name(board), candidate);
                (leaves(board) && tried.insert(proof)).then_some((board, row))
            });
            let Some((board, row)) = next else {
                return Ok(());
            };
            prove_row(db, board, row, budget)?;
        }
    }

    /// Reports whether a board's best may be exported; prints the reason if not.
    pub(super) fn admits(&self, board: &Board) -> bool {
        let best = board.rows.first().and_then(|row| row.compared);
        let uncompared = best == Some(Compared::SmallerProblems);
        if uncompared && !self.allow_uncompared {
            say!(
                "left out: {} ({}; --allow-uncompared)",
                board_name(board),
                Compared::SmallerProblems.describe()
            );
        }
        !uncompared || self.allow_uncompared
    }
}

/// Reports whether a row was not run whole, on a device that can do it now. A real GPU always runs the
/// whole problem.
fn lacks_proof(board: &Board, row: &LeaderboardRow) -> bool {
    let whole = row.compared == Some(Compared::Whole);
    board.device_kind == DeviceKind::Vgpu && !whole
}

/// Proves one row and stores the outcome.
fn prove_row(
    db: &Path,
    board: &Board,
    row: &LeaderboardRow,
    budget: ProveBudget,
) -> Result<(), CliError> {
    let name = format!("{} {}", board.key.kernel, board_name(board));
    let proof = match proof_of(board, row, budget) {
        Ok(proof) => proof,
        Err(why) => {
            say!("note: {name}: not proven: {why}");
            return Ok(());
        }
    };
    let judgement = proof.judgement;
    let store = |judgement: Judgement| {
        block_on(async {
            let store = Store::open(db).await?;
            let run = RunId::from_text(&row.run_id);
            let stored = store
                .store_proof(&run, &board.key, &row.config, judgement)
                .await;
            store.close().await?;
            Ok(stored?)
        })
    };
    match proof.outcome {
        ProofOutcome::Whole => {
            if let Err(error) = store(judgement) {
                say!("note: {name}: proven; the database does not keep it: {error}");
            }
        }
        // Unlike a lost proof, a withdrawal that is not stored lets a wrong result be exported.
        ProofOutcome::Wrong => {
            say!("{name}: the best is wrong, its time is withdrawn: {judgement}");
            store(judgement)?;
        }
        ProofOutcome::NotMade(why) => say!("note: {name}: {why}"),
    }
    Ok(())
}

/// Runs a row's candidate whole; the error is the reason why that is impossible.
fn proof_of(board: &Board, row: &LeaderboardRow, budget: ProveBudget) -> Result<Proof, String> {
    let space = board.space_path.as_ref();
    let space = space.ok_or("the database does not say where its search space is")?;
    let request = Request {
        kernels: vec![space.to_string_lossy().into_owned()],
        device: board.key.device.clone(),
        problems: vec![board.key.problem.clone()],
        evals: Some(1),
        no_baseline: true,
        no_knowledge: true,
        prove_budget: Some(budget),
        ..Request::default()
    };
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    let told = |error: JobError| error.to_string();
    let prepared = Prepared::new(&request, &folder).map_err(told)?;
    let task = prepared.plan().tasks.first().ok_or("the problem is gone")?;
    let config = task.space.config_from_values(&row.config);
    let config = config.map_err(|error| error.to_string())?;
    let proof = prepared.prove(0, &config).map_err(told)?;
    match board.candidates.first() {
        Some(candidate) if *candidate == proof.candidate => Ok(proof),
        _ => Err("the template, its options or the compiler changed since it was timed".to_owned()),
    }
}
