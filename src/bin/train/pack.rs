//! `tessera-train pack`: packs games and chunks into a shard.

use std::path::{Path, PathBuf};

use super::games::{ends, make_folder, range, share};
use super::policies::{PolicyArguments, PolicyOptions, policy};
use anyhow::{Context, anyhow, bail};
use clap::{ArgGroup, Args};
use indicatif::ProgressBar;
use tessera::chess::RATING_SPREAD;
use tessera::command_line::number_that;
use tessera::data::held_out::HeldOut;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::packing::{
    Judge, Judged, PackCounts, PackError, PackEvent, PackOptions, Packer,
};
use tessera::data::record::Record;
use tessera::data::shard::Header;
use tessera::data::{Contents, Curve, is_stdin};
use tessera::error_report::tell;
use tessera::eval::positions;
use tessera::label::Teaching;
use tessera::output;
use tessera::plural::counted;
use tessera::{overwrite, progress};

/// Arguments of `tessera-train pack`.
#[derive(Args)]
#[command(group(ArgGroup::new("networks").args(["teachers"])))]
pub struct Pack {
    /// Games: PGN, plain or compressed with gzip or zstd; or Lc0 training chunks (versions 6 and
    /// 7), and tars and folders of chunks. Everything except folders may come through a pipe, such
    /// as /dev/stdin.
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The shard to write.
    #[arg(short, long, value_name = "OUT.shard")]
    output: PathBuf,
    /// The position that a score after a move refers to: the one before the move, scored by the
    /// engine that chose the move (chooser), or the one after it, scored by an analysis (analysis).
    #[arg(long, value_enum, value_name = "REFERENCE")]
    evals: Option<EvalRefersTo>,
    /// Make every move of the games a policy target, which suits human games.
    #[arg(long, conflicts_with = "unscored_random")]
    played: bool,
    /// Treat moves without a score as random moves, such as those of `tessera-train label --random-moves`,
    /// and make none of them a target.
    #[arg(long, requires = "evals")]
    unscored_random: bool,
    /// The curve that converts the engines' scores to values.
    #[arg(long, value_enum, default_value = "lichess", value_name = "CURVE")]
    curve: Curve,
    /// Merge the scored moves of a position (`tessera-train label --multipv`) into one policy target: a
    /// softmax of their expected scores at this temperature, such as 0.05.
    #[arg(long, value_name = "T", value_parser = temperature, requires = "evals")]
    alternatives: Option<f32>,
    /// Leave out games that reach a position in one of these files, separated by commas: puzzles
    /// (CSV in Lichess's format) or test suites (EPD, or one FEN per line), plain or compressed
    /// with gzip or zstd.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    without: Vec<PathBuf>,
    /// Leave out the share of games that `data.validation` of this size would keep for validation;
    /// a hash of each game's moves decides.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    hold_out: f64,
    /// Take the targets of policy and value from this network; may be repeated with different
    /// ratings. Each position takes them from one network with a rating near its mover's (see
    /// --rating-spread). Temperatures above the default of 1 flatten the policy. Example:
    /// maia-1500.pt,elo=1500.
    #[arg(
        long = "teacher",
        value_name = "FILE[,temperature=T][,elo=N]",
        value_parser = policy,
        requires = "played",
        conflicts_with = "evals"
    )]
    teachers: Vec<PolicyOptions>,
    #[command(flatten)]
    networks: PolicyArguments,
    /// With several --teacher options: the standard deviation, in rating points, of the Gaussian by
    /// which each position's teacher is drawn; 0 takes the nearest.
    #[arg(long, default_value_t = RATING_SPREAD, value_name = "POINTS", requires = "networks")]
    rating_spread: u32,
    /// With --teacher, for sampled games: give both players of each game the same rating, drawn
    /// from this range, so that all ratings are equally frequent, and drop the games' results.
    /// Example: 1000..2199.
    #[arg(long, value_name = "A..B", value_parser = ratings, requires = "networks")]
    random_ratings: Option<(u16, u16)>,
    /// With --teacher: the share of the policy target that goes to the move played.
    #[arg(
        long, default_value_t = 0.0, value_name = "SHARE",
        value_parser = share, requires = "networks"
    )]
    played_share: f64,
    /// With --teacher: drop a random number of plies, drawn from this range, at the start of each
    /// game, which thins out openings.
    #[arg(long, value_name = "A..B", value_parser = range, requires = "networks")]
    cut: Option<(usize, usize)>,
    /// With --teacher: seed of all random choices.
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "networks")]
    seed: u64,
    /// Stop at the first unusable game, variation or record instead of skipping it.
    #[arg(long)]
    strict: bool,
    /// Read at most this many games.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl Pack {
    /// Packs the games.
    pub fn run(self) -> anyhow::Result<()> {
        let rules = TargetRules {
            evals: self.evals,
            played: self.played,
            noise: self.unscored_random,
            curve: self.curve,
            alternatives: self.alternatives,
        };
        if self.alternatives.is_some() && self.evals != Some(EvalRefersTo::MovePlayed) {
            bail!("--alternatives needs --evals chooser: an analysis scores what was played");
        }
        let header = Header {
            sources: self.inputs.iter().map(|path| file_name(path)).collect(),
            rules,
        };
        make_folder(&self.output)?;
        output::check_bytes(&self.output, "a shard")?;
        let teachers = self.teachers.iter().map(|it| it.net.as_path());
        let read = self.inputs.iter().chain(&self.without);
        overwrite::refuse(&self.output, read.map(PathBuf::as_path).chain(teachers))?;
        let options = PackOptions {
            held_out: held_out(&self.without)?,
            hold_out: self.hold_out,
            limit: self.limit,
            is_strict: self.strict,
        };
        let progress = self.progress()?;
        let teaching = self.teaching()?;
        let teach = |records: &[Record], first: u64| -> Judged {
            let teaching = teaching.as_ref().expect("called where there is one");
            Ok(teaching.teach(records, first)?)
        };
        let judge: Option<&Judge> = if teaching.is_some() {
            Some(&teach)
        } else {
            None
        };
        let mut report = |event: PackEvent| match event {
            PackEvent::Skipped(fault) => {
                progress.suspend(|| tell(format_args!("left out: {fault}")));
            }
            PackEvent::Added(counts) => {
                let games = counted(counts.packed, "game");
                let samples = counted(counts.samples, "sample");
                progress::say(&progress, format_args!("{games}, {samples}"));
            }
        };
        let packer = Packer::create(&self.output, &header, options, judge, &mut report)?;
        let (counts, bytes) = self.pack(packer, &progress)?;
        progress.finish_and_clear();
        let line = format!(
            "{}: {}, {}, {bytes} bytes ({:.2} per sample); {} without a target, {} skipped{}{}{}",
            self.output.display(),
            counted(counts.packed, "game"),
            counted(counts.samples, "sample"),
            bytes as f64 / counts.samples as f64,
            counted(counts.without_samples, "game"),
            counts.skipped,
            match self.without.is_empty() && self.hold_out == 0.0 {
                true => String::new(),
                false => format!(", {} left out", counts.left_out),
            },
            match counts.cut {
                0 => String::new(),
                cut => format!(", {cut} ended by a null move"),
            },
            match counts.bad_variations {
                0 => String::new(),
                bad => format!(", {} left out", counted(bad, "variation")),
            },
        );
        Ok(output::announce(&self.output, line)?)
    }

    /// Packs all inputs. Returns the counts and the shard's size in bytes.
    fn pack(
        &self,
        mut packer: Packer,
        progress: &ProgressBar,
    ) -> anyhow::Result<(PackCounts, u64)> {
        for input in &self.inputs {
            match Contents::open(input, |file| progress.wrap_read(file))? {
                Contents::Chunks(chunks) => {
                    let files = (0..chunks.len()).map(|chunk| chunks.path(chunk));
                    overwrite::refuse(&self.output, files)?;
                    packer.chunks(&chunks).map_err(explained)?;
                }
                Contents::Games(_) if self.evals.is_none() && !self.played => {
                    bail!("choose the targets of PGN games: give --evals, --played or both");
                }
                Contents::Games(games) => packer.games(games, input).map_err(explained)?,
                Contents::Shard(_) => bail!("{} is a shard already", input.display()),
            }
        }
        packer.finish().map_err(explained)
    }

    /// Returns the teachers, if any are given.
    fn teaching(&self) -> anyhow::Result<Option<Teaching>> {
        if self.teachers.is_empty() {
            return Ok(None);
        }
        let callers = rayon::current_num_threads();
        let teachers = self.networks.players(&self.teachers, callers)?;
        if teachers.len() > 1 && teachers.iter().any(|teacher| teacher.rating.is_none()) {
            bail!("several teachers need a rating each, as in --teacher maia-1500.pt,elo=1500");
        }
        let (first, last) = self.cut.unwrap_or_default();
        let mut teaching = Teaching::new(teachers);
        teaching.played = self.played_share as f32;
        teaching.spread = self.rating_spread;
        teaching.ratings = self.random_ratings.map(|(first, last)| first..=last);
        teaching.cut = first..=last;
        teaching.seed = self.seed;
        Ok(Some(teaching))
    }

    /// Returns a progress bar over the bytes of all files of games.
    fn progress(&self) -> anyhow::Result<ProgressBar> {
        let mut bytes = 0;
        for input in &self.inputs {
            if is_stdin(input) {
                continue;
            }
            let file = std::fs::metadata(input).with_context(|| input.display().to_string())?;
            if file.is_file() {
                bytes += file.len();
            }
        }
        Ok(progress::bytes(bytes))
    }
}

/// Rewords an error in terms of the command's options.
fn explained(error: PackError) -> anyhow::Error {
    match error {
        PackError::Unusable(fault) => anyhow!("{fault}; without --strict it would be skipped"),
        PackError::Nothing(counts) => anyhow!(nothing(&counts)),
        error => error.into(),
    }
}

/// Explains why there are no samples.
fn nothing(counts: &PackCounts) -> String {
    let read = counts.read;
    if read == 0 {
        "there are no games in the input".to_owned()
    } else if counts.skipped == read as u64 {
        format!("none of {read} games or records can be read, see above")
    } else if counts.left_out > 0 && counts.without_samples == 0 {
        format!(
            "all games are left out by --without or --hold-out: {}",
            counts.left_out
        )
    } else {
        format!(
            "{} without any training target under these options; \
             see `tessera-train pack --help` on --evals and --played",
            counted(read, "game")
        )
    }
}

fn ratings(text: &str) -> Result<(u16, u16), String> {
    let complaint = "write the lowest and the highest rating, as in 1000..2199";
    ends(text).ok_or_else(|| complaint.to_owned())
}

fn temperature(text: &str) -> Result<f32, String> {
    number_that(text, |it: &f32| it.is_finite() && *it > 0.0, "positive")
}

/// Returns the positions of puzzles and suites.
fn held_out(files: &[PathBuf]) -> anyhow::Result<HeldOut> {
    let mut keys = Vec::new();
    for file in files {
        let (games, refused) = positions::read(file)?;
        for error in refused {
            tell(format_args!("--without ignores: {error}"));
        }
        keys.extend(games.iter().map(|game| game.current().key));
    }
    Ok(keys.into_iter().collect())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
