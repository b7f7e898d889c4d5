//! `tessera-train transcoder`: approximates a layer's feed-forward block by sparse features.

use super::samples::{open, spread};
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use tessera::backend::CodeArguments;
use tessera::command_line::network_file;
use tessera::error_report::tell;
use tessera::eval::puzzles::{self, Half};
use tessera::explain::{FitSettings, LabelledGame, TranscoderAbout, fit, predict_themes};
use tessera::{output, overwrite};

#[derive(Args)]
pub struct Transcoder {
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    /// The layer, from 1
    #[arg(long, value_name = "N")]
    layer: usize,
    /// PGN files, separated by commas, of the games to learn from; every tenth game is held out
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE.pgn")]
    games: Vec<PathBuf>,
    /// Maximum number of positions to learn from, eight per game
    #[arg(long, default_value_t = 4000, value_name = "N")]
    limit: usize,
    /// Number of features
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    features: u16,
    /// Maximum number of active features per square
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top_k: u16,
    /// Number of optimizer steps
    #[arg(long, default_value_t = 2000, value_name = "N")]
    steps: usize,
    /// Peak learning rate
    #[arg(long, value_name = "RATE", default_value_t = 1e-3)]
    learning_rate: f64,
    /// Seed of the initial weights and of the sample order
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: i64,
    /// Puzzles with themes, in Lichess's CSV format; features that predict a theme are chosen on
    /// one half and evaluated on the other
    #[arg(long, value_name = "FILE.csv")]
    themes: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "OUT.json")]
    output: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
}

impl Transcoder {
    pub fn run(&self) -> anyhow::Result<()> {
        if self.top_k > self.features {
            bail!(
                "--top-k {} is more than --features {}",
                self.top_k,
                self.features
            );
        }
        let files = self.games.iter().chain(&self.net).chain(&self.themes);
        overwrite::refuse(&self.output, files)?;
        let network = open(self.net.as_deref(), &self.code)?;
        let puzzles = self.themes.as_deref().map(labelled).transpose()?;
        let [positions, held_out] = spread(&self.games, self.limit)?;
        let settings = FitSettings {
            layer: self.layer,
            features: self.features.into(),
            top_k: self.top_k.into(),
            steps: self.steps,
            rate: self.learning_rate,
            seed: self.seed,
        };
        let mut transcoder = fit(&network, &positions, &held_out, &settings, |step, error| {
            tell(format_args!(
                "step {step}: error {error:.4} of the variance"
            ));
        })?;
        if let Some(puzzles) = &puzzles {
            transcoder.about.themes = predict_themes(&transcoder, &network, puzzles)?;
        }
        let shown = self.output.display();
        transcoder
            .write(&self.output)
            .with_context(|| format!("cannot write {shown}"))?;
        let about = &transcoder.about;
        let summary = summary(&self.output, about);
        Ok(output::announce(&self.output, summary.trim_end())?)
    }
}

/// Summarises a transcoder's quality, with a table of the themes that its features predict.
fn summary(path: &Path, about: &TranscoderAbout) -> String {
    let mut text = format!(
        "{}: layer {} of {}, {} features, {} active; explained variance {:.1} %, dead {:.1} %, \
         over {} positions held out\n",
        path.display(),
        about.layer,
        about.network,
        about.features,
        about.top_k,
        100.0 * about.explained_variance,
        100.0 * about.dead,
        about.held_out
    );
    if !about.themes.is_empty() {
        text +=
            "\n| theme | feature | precision | recall | of all puzzles |\n|---|---|---|---|---|\n";
    }
    for theme in &about.themes {
        text += &format!(
            "| {} | {} | {:.1} % | {:.1} % | {:.1} % of {} |\n",
            theme.theme,
            theme.feature,
            100.0 * theme.precision,
            100.0 * theme.recall,
            100.0 * theme.base_rate,
            theme.puzzles
        );
    }
    text
}

/// Returns the first position of each puzzle with the puzzle's themes.
fn labelled(path: &Path) -> anyhow::Result<Vec<LabelledGame>> {
    let (puzzles, left_out) = puzzles::read(path)?;
    for error in &left_out {
        tell(format_args!("left out: {error}"));
    }
    let labelled = puzzles.into_iter().map(|puzzle| {
        let selects = Half::of(&puzzle) == Half::Select;
        let themes = puzzle.themes.as_deref();
        let themes = themes.with_context(|| format!("{} has no themes", path.display()))?;
        Ok(LabelledGame {
            themes: themes.split_whitespace().map(str::to_owned).collect(),
            selects,
            game: puzzle.game,
        })
    });
    labelled.collect()
}
