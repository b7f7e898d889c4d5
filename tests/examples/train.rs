//! Trains a small network on your own games: `cargo run --release --example train -- games.pgn
//! folder`. The games need no scores: the moves played and the results are the targets.

use anyhow::Context;
use std::path::Path;
use tch::Device;
use tessera::data::Curve;
use tessera::data::label::TargetRules;
use tessera::data::pgn;
use tessera::data::shard::{Block, Header, ShardWriter};
use tessera::train::{RunOptions, Summary, TrainConfig, Trainer};

/// Games per block, enough to compress well.
const GAMES_PER_BLOCK: usize = 500;

#[allow(dead_code, reason = "the test calls `tessera-train`")]
fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let games = arguments.next().context("name a PGN file")?;
    let folder = arguments.next().context("name a folder for the network")?;
    let summary = train(games.as_ref(), folder.as_ref(), 1000)?;
    println!(
        "{} samples, {}",
        summary.samples,
        summary.checkpoint.display()
    );
    Ok(())
}

/// Packs the games and trains this many steps. `tessera-train export FOLDER/run -o own.pt` then writes a
/// network file for the engine.
pub fn train(games: &Path, folder: &Path, steps: u64) -> anyhow::Result<Summary> {
    std::fs::create_dir_all(folder)?;
    let shard = folder.join("games.shard");
    pack(games, &shard)?;
    let config = folder.join("config.toml");
    std::fs::write(
        &config,
        format!(
            r#"
name = "own"
preset = "cf-1m-gab"
steps = {steps}
batch = 64
[data]
validation = 0.1
shards = [{{ path = {shard:?} }}]
"#
        ),
    )?;
    let config = TrainConfig::read_with(&config, &[])?;
    let options = RunOptions {
        folder: folder.join("run"),
        threads: 1,
        time: None,
        trace: None,
        stop: Default::default(),
    };
    let mut trainer = Trainer::open(&config, &options, Device::Cpu)?;
    Ok(trainer.run(&options, &mut |progress| {
        let (name, loss) = progress.trained[0];
        let loss = loss.unwrap_or(f64::NAN);
        println!("step {}: {name} loss {loss:.3}", progress.step);
    })?)
}

fn pack(games: &Path, shard: &Path) -> anyhow::Result<()> {
    let rules = TargetRules {
        evals: None,
        played: true,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let header = Header {
        sources: vec![games.display().to_string()],
        rules,
    };
    let mut records = Vec::new();
    for text in pgn::open(games, |file| file)? {
        records.push(pgn::parse_game(&text?)?);
    }
    let mut writer = ShardWriter::create(shard, &header)?;
    for block in records.chunks(GAMES_PER_BLOCK) {
        let samples = block.iter().map(|record| rules.samples(record)).sum();
        writer.append(&Block::new(block, samples)?)?;
    }
    writer.finish()?;
    Ok(())
}
