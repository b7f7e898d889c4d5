//! `tessera-train copies`: measures how long generated games follow games of the training data.

use anyhow::{Context, bail};
use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tessera::data::Contents;
use tessera::data::copies::{Copies, Followers, KnownGames, PLIES};
use tessera::data::shard::Shard;

/// Arguments of `tessera-train copies`.
#[derive(Args)]
pub struct CopiesCommand {
    /// Games in PGN, such as those of `tessera generate`, plain or compressed with gzip or zstd.
    #[arg(required = true, value_name = "GAMES")]
    games: Vec<PathBuf>,
    /// Shards, separated by commas, whose games these games are compared with.
    #[arg(
        long = "data",
        required = true,
        value_name = "SHARD",
        value_delimiter = ','
    )]
    data: Vec<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl CopiesCommand {
    /// Compares the games and prints the counts.
    pub fn run(self) -> anyhow::Result<()> {
        let mut known = KnownGames::default();
        for path in &self.data {
            let shard = Shard::open(path)?;
            for block in 0..shard.blocks().len() {
                for record in shard.read(block)? {
                    let shown = path.display();
                    known.add(&record).with_context(|| format!("{shown}"))?;
                }
            }
        }
        let mut copies = Copies::default();
        for path in &self.games {
            let shown = path.display();
            let Contents::Games(games) = Contents::open(path, |file| file)? else {
                bail!("{shown} holds no games in PGN");
            };
            for text in games {
                let text = text.with_context(|| format!("{shown}"))?;
                let record = tessera::data::pgn::parse_game(&text);
                let which = || format!("{shown}, {}", text.place);
                let record = record.with_context(which)?;
                let counted = known.count(&record, &mut copies);
                counted.with_context(which)?;
            }
        }
        let text = match self.json {
            true => serde_json::json!({
                "plies": PLIES,
                "beginnings": copies.beginnings,
                "whole": copies.whole,
            })
            .to_string(),
            false => table(&copies),
        };
        writeln!(stdout(), "{text}")?;
        Ok(())
    }
}

fn table(copies: &Copies) -> String {
    let row = |what: String, Followers { games, known }: Followers| {
        let share = 100.0 * known as f64 / games.max(1) as f64;
        format!("{what:<14}{games:>10}{known:>10}  {share:>5.1} %")
    };
    let beginnings = PLIES.iter().zip(copies.beginnings);
    let beginnings = beginnings.map(|(plies, count)| row(format!("{plies} plies"), count));
    let head = format!("{:<14}{:>10}{:>10}", "", "games", "known");
    let whole = row("whole games".to_owned(), copies.whole);
    let lines = [head].into_iter().chain(beginnings).chain([whole]);
    lines.collect::<Vec<String>>().join("\n")
}
