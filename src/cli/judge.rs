//! Options that select the judge of reviews.

use clap::Args;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tessera::engine::EngineError;
use tessera::error_report::{one_line, tell};
use tessera::review::{JUDGE_NODES, Judge, USUAL_JUDGE};

/// The value that stands for no judge.
const NONE: &str = "none";

/// The judge.
#[derive(Args, Clone, Debug)]
pub struct JudgeArguments {
    /// UCI engine that scores the games: a program, or none for Tessera's own scores, which are
    /// less reliable; by default stockfish if it is installed
    #[arg(long, value_name = "PROGRAM")]
    judge: Option<PathBuf>,
    /// Nodes of the judge for each position; positions around doubtful moves get more
    #[arg(long, value_name = "N", default_value_t = JUDGE_NODES, value_parser = clap::value_parser!(u64).range(1..))]
    judge_nodes: u64,
}

impl JudgeArguments {
    /// Starts the judge, which will use up to this many processes. Without the option, a missing
    /// engine counts as none, and prints a line if it fails otherwise.
    ///
    /// # Errors
    /// [`EngineError`] if the engine that the user named cannot be used.
    pub fn start(&self, processes: usize) -> Result<Option<Judge>, EngineError> {
        let start = |program: &Path| Judge::start(program, self.judge_nodes, processes);
        if let Some(program) = &self.judge {
            return match program == Path::new(NONE) {
                true => Ok(None),
                false => start(program).map(Some),
            };
        }
        match start(Path::new(USUAL_JUDGE)) {
            Ok(judge) => Ok(Some(judge)),
            Err(EngineError::Start { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => {
                let error = one_line(&error);
                tell(format_args!("reviews have no judge: {error}"));
                Ok(None)
            }
        }
    }
}
