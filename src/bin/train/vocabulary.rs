//! `tessera-train vocabulary`: lists the moves in games as a vocabulary for networks of the family gpt.

use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tessera::data::san_moves::{MoveCounts, count_moves};
use tessera::data::shard::Shard;
use tessera::encode::Vocabulary;
use tessera::error_report::tell;

/// Arguments of `tessera-train vocabulary`.
#[derive(Args)]
pub struct VocabularyCommand {
    /// Shards whose games are read.
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<PathBuf>,
    /// Leave out moves that were played fewer than N times. Games with such a move are then not
    /// used for training.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    least: u64,
}

impl VocabularyCommand {
    /// Prints the `[network.model]` line.
    pub fn run(self) -> anyhow::Result<()> {
        let mut all = MoveCounts::new();
        for path in &self.shards {
            for (text, count) in count_moves(&Shard::open(path)?)? {
                *all.entry(text).or_default() += count;
            }
        }
        let played: u64 = all.values().sum();
        all.retain(|_, count| *count >= self.least);
        let kept: u64 = all.values().sum();
        Vocabulary::san(all.keys().cloned())?;
        tell(format_args!(
            "{} moves, {:.3} % of the {played} that were played",
            all.len(),
            100.0 * kept as f64 / played.max(1) as f64
        ));
        let texts: Vec<String> = all.keys().map(|text| format!("{text:?}")).collect();
        writeln!(stdout(), "vocabulary = {{ san = [{}] }}", texts.join(", "))?;
        Ok(())
    }
}
