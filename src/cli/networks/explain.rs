//! `tessera explain`: explains how a network sees a position.

use crate::cli::options::PositionArguments;
use crate::cli::output::save;
use anyhow::{Context, bail};
use serde_json::json;
use shakmaty::{CastlingMode, Move, Position};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tessera::backend::{CodeArguments, Decoding, DeviceChoice, Precision};
use tessera::chess::{Game, Ratings};
use tessera::command_line::network_file;
use tessera::data::pgn;
use tessera::data::replay::main_line;
use tessera::eval::bench::POSITIONS;
use tessera::explain::{
    Explanation, Lens, Settings, Transcoder, denoise, denoising_page, explain, page, pictures,
    read_game, reading_page, search,
};
use tessera::inference;
use tessera::network::{self, Gpt, Network};
use tessera::player::PlayerSettings;
use tessera::{output, overwrite};

/// Show what a network sees in a position: attention, attribution and heads, on one page
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    position: PositionArguments,
    /// Take the position from the first game of a PGN file
    #[arg(long, value_name = "FILE.pgn", requires = "ply", conflicts_with_all = [
        "fen", "moves", "chess960",
    ])]
    games: Option<PathBuf>,
    /// The position after this many half-moves of the game
    #[arg(long, value_name = "PLIES", requires = "games")]
    ply: Option<usize>,
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    /// A second network to show side by side with the first
    #[arg(long, value_name = "NET", value_parser = network_file)]
    against: Option<PathBuf>,
    /// Rating of both players, for networks that read ratings; two ratings are shown side by side
    #[arg(long, value_delimiter = ',', value_name = "ELO")]
    elo: Vec<u16>,
    /// The move to explain, in UCI notation or SAN; by default the policy's likeliest move
    #[arg(long = "move", value_name = "MOVE")]
    mv: Option<String>,
    /// Layers, counted from 1, whose attention the page contains; by default as many as fit
    #[arg(long, value_delimiter = ',', value_name = "N")]
    layers: Option<Vec<usize>>,
    /// Also show the first plies of a search of N nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Instead, show how a network imagines the future in N steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with_all = [
        "against", "elo", "mv", "layers", "nodes", "transcoder", "lens", "svg",
    ])]
    steps: Option<u8>,
    /// Show a layer's active features, with a file that `tessera-train transcoder` writes
    #[arg(long, value_name = "FILE.json", conflicts_with = "against")]
    transcoder: Option<PathBuf>,
    /// Read outputs after each layer by a file that `tessera-train lens` writes; the built-in network
    /// has a lens
    #[arg(long, value_name = "FILE.json", conflicts_with = "against")]
    lens: Option<PathBuf>,
    /// The page to write, which browsers can show offline
    #[arg(short, long, value_name = "OUT.html", required_unless_present_any = [
        "json", "svg",
    ])]
    output: Option<PathBuf>,
    /// Print everything as one JSON object, in f32
    #[arg(long)]
    json: bool,
    /// Write pictures to this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let networks = [&self.net, &self.against, &self.transcoder, &self.lens];
        let read = networks.into_iter().chain([&self.games]).flatten();
        let json = self.json_output();
        let written = [&self.output, &json].into_iter().flatten();
        for output in written.clone() {
            overwrite::refuse(output, read.clone())?;
        }
        if let Some(folder) = &self.svg {
            output::check_folder(folder)?;
        }
        overwrite::refuse_twice(written)?;
        let clock = Instant::now();
        let game = self.game()?;
        if let Some(network) = self.gpt()? {
            return self.read(&network, game);
        }
        if let Some(steps) = self.steps {
            return self.denoise(&game, usize::from(steps));
        }
        let mv = self.mv.as_deref().map(|text| game.read_move(text));
        let settings = Settings {
            mv: mv.transpose().context("--move")?,
            sample: POSITIONS
                .iter()
                .map(|fen| Game::from_fen(fen, CastlingMode::Standard))
                .collect::<Result<_, _>>()?,
        };
        let mut explanations = Vec::new();
        for view in &self.views(&game)? {
            let explained = self.explain(view, &settings);
            let name = &view.network.about.name;
            explanations.push(explained.with_context(|| format!("cannot explain {name}"))?);
        }
        self.check_layers(&explanations)?;
        if let Some(path) = &json {
            let text = json!({ "explanations": explanations }).to_string() + "\n";
            save(path, &text)?;
        }
        if let Some(folder) = &self.svg {
            save_pictures(folder, &explanations)?;
        }
        if let Some(path) = &self.output {
            let page = page(&explanations, self.layers.as_deref());
            save(path, &page.html)?;
            let size = page.html.len() as f64 / 1e6;
            let seconds = clock.elapsed().as_secs_f64();
            let line = format!("{}: {size:.2} MB, {seconds:.1} s", path.display());
            // If the JSON goes to standard output, nothing else may be printed there.
            let shown = json.as_deref().filter(|json| output::is_stdout(json));
            let shown = shown.unwrap_or(path);
            output::announce(shown, line)?;
            for (explanation, left_out) in explanations.iter().zip(&page.left_out) {
                if !left_out.is_empty() && self.layers.is_none() {
                    let layers: Vec<String> = left_out.iter().map(usize::to_string).collect();
                    let line = format!(
                        "{}: the attention of layers {} does not fit; --layers selects others",
                        explanation.network,
                        layers.join(", ")
                    );
                    output::announce(shown, line)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the game whose last position is to be explained.
    fn game(&self) -> anyhow::Result<Game> {
        match &self.games {
            Some(path) => played(path, self.ply.unwrap_or_default()),
            None => self.position.game(),
        }
    }

    /// Returns the output for the JSON.
    fn json_output(&self) -> Option<PathBuf> {
        self.json.then(|| PathBuf::from("-"))
    }

    /// Opens the network if it is a move-token model.
    fn gpt(&self) -> anyhow::Result<Option<Network<Gpt>>> {
        let Some(path) = &self.net else {
            return Ok(None);
        };
        let file = inference::read_network(Some(path))?;
        // If the file is invalid, opening it as another network later reports the error.
        let network = network::open_any(&file, self.code.policy()).ok();
        Ok(network.and_then(|network| network.downcast::<Gpt>()))
    }

    /// Shows how a move-token GPT reads the game.
    fn read(&self, network: &Network<Gpt>, mut game: Game) -> anyhow::Result<()> {
        let name = &network.about.name;
        let others = [
            ("--against", self.against.is_some()),
            ("--move", self.mv.is_some()),
            ("--layers", self.layers.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--steps", self.steps.is_some()),
            ("--transcoder", self.transcoder.is_some()),
            ("--lens", self.lens.is_some()),
            ("--svg", self.svg.is_some()),
        ];
        if let Some((option, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            bail!("{name} reads games: {option} is for networks that evaluate positions");
        }
        match &self.elo[..] {
            [] => {}
            &[elo] => game.set_ratings(Ratings::both(elo)),
            _ => bail!("{name} is shown at one rating: give --elo a single value"),
        }
        let reading =
            read_game(network, &game).with_context(|| format!("cannot explain {name}"))?;
        if let Some(path) = self.json_output() {
            save(&path, json!({ "reading": reading }).to_string() + "\n")?;
        }
        if let Some(path) = &self.output {
            save(path, reading_page(&reading))?;
        }
        Ok(())
    }

    /// Shows how the network imagines the future.
    fn denoise(&self, game: &Game, steps: usize) -> anyhow::Result<()> {
        let (network, _) = self.open(self.net.as_deref())?;
        let decoding = Decoding::step_by_step(steps);
        let denoising = denoise(&network, game, decoding)
            .with_context(|| format!("cannot explain {}", network.about.name))?;
        if let Some(path) = self.json_output() {
            save(&path, json!({ "denoising": denoising }).to_string() + "\n")?;
        }
        if let Some(path) = &self.output {
            save(path, denoising_page(&denoising))?;
        }
        Ok(())
    }

    /// Explains a position with one network, including a search if requested.
    fn explain(&self, view: &View, settings: &Settings) -> anyhow::Result<Explanation> {
        let mut explanation = explain(&view.network, &view.game, settings)?;
        if let Some(nodes) = self.nodes {
            let (code, device) = (self.code.policy(), DeviceChoice::Cpu);
            let backend = inference::open(&view.file, code, device, Precision::F32, 1)?;
            explanation.search = Some(search(Arc::new(backend), &view.game, nodes)?);
        }
        let moves = explanation.moves.iter();
        let moves: Vec<Move> = moves
            .map(|it| view.game.parse_move(&it.uci))
            .collect::<Result<_, _>>()?;
        if let Some(path) = &self.lens {
            let lens = Lens::open(path, &view.network);
            let lens = lens.with_context(|| path.display().to_string())?;
            explanation.lens = Some(lens.report(&view.network, &view.game, &moves)?);
        }
        if let Some(path) = &self.transcoder {
            let transcoder = Transcoder::read(path, &view.network);
            let transcoder = transcoder.with_context(|| path.display().to_string())?;
            explanation.transcoder = Some(transcoder.report(&view.network, &view.game, &moves)?);
        }
        Ok(explanation)
    }

    /// Opens one or two networks, each with the game and the ratings that it is to read.
    fn views(&self, game: &Game) -> anyhow::Result<Vec<View>> {
        let nets = [Some(self.net.as_deref()), self.against.as_deref().map(Some)];
        let mut nets: Vec<Option<&Path>> = nets.into_iter().flatten().collect();
        let elos: Vec<Option<u16>> = match (&self.elo[..], &self.against) {
            ([], _) => vec![None; nets.len()],
            (&[elo], _) => vec![Some(elo); nets.len()],
            (&[one, other], None) => {
                nets.push(nets[0]);
                vec![Some(one), Some(other)]
            }
            ([_, _], Some(_)) => {
                bail!("two networks cannot be compared at two ratings: give --elo one rating")
            }
            _ => bail!("--elo takes one rating, or two to compare"),
        };
        let mut views = Vec::new();
        for (net, elo) in nets.into_iter().zip(elos) {
            let (network, file) = self.open(net)?;
            let mut game = game.clone();
            if let Some(ratings) = ratings(elo, &game) {
                game.set_ratings(ratings);
            }
            views.push(View {
                network,
                file,
                game,
            });
        }
        let reads_ratings = |view: &View| {
            let interface = view.network.architecture.interface();
            interface.scalars.contains(&"self_elo")
        };
        if !self.elo.is_empty() && !views.iter().any(reads_ratings) {
            bail!(
                "the network {} reads no ratings: leave --elo out",
                views[0].network.about.name
            );
        }
        Ok(views)
    }

    /// Opens a network. Also returns the contents of its file.
    fn open(&self, net: Option<&Path>) -> anyhow::Result<(Network, Cow<'static, [u8]>)> {
        let file = inference::read_network(net)?;
        let shown = net.map_or("the network built in".to_owned(), |net| {
            net.display().to_string()
        });
        let network = network::open(&file, self.code.policy());
        Ok((
            network.with_context(|| format!("cannot open {shown}"))?,
            file,
        ))
    }

    fn check_layers(&self, explanations: &[Explanation]) -> anyhow::Result<()> {
        let layers = explanations.iter().filter_map(|it| it.attention.as_ref());
        let most = layers.map(|attention| attention.layers.len()).max();
        let asked = self.layers.iter().flatten();
        for &layer in asked {
            match most {
                Some(most) if !(1..=most).contains(&layer) => {
                    bail!("there is no layer {layer}: --layers takes 1 to {most}")
                }
                None => bail!("the network has no attention: leave --layers out"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A network, with the game and the ratings that it is to read.
struct View {
    network: Network,
    file: Cow<'static, [u8]>,
    game: Game,
}

/// Returns the ratings to set for both players: the requested rating, or the engine's default if
/// the game contains no ratings. Returns `None` to keep the game's own ratings.
fn ratings(elo: Option<u16>, game: &Game) -> Option<Ratings> {
    let known = game.ratings();
    match elo {
        Some(elo) => Some(Ratings::both(elo)),
        None if known == Ratings::default() => {
            Some(PlayerSettings::default().ratings(game.position().turn()))
        }
        None => None,
    }
}

/// Returns the first game in a file, up to a ply.
fn played(path: &Path, ply: usize) -> anyhow::Result<Game> {
    let shown = path.display();
    let mut games = pgn::open(path, |file| file).with_context(|| format!("cannot read {shown}"))?;
    let text = games
        .next()
        .with_context(|| format!("{shown} holds no game"))?;
    let record = pgn::parse_game(&text?).with_context(|| format!("the game in {shown}"))?;
    let mut game = main_line(&record).with_context(|| format!("the game in {shown}"))?;
    let plies = game.plies().len() - 1;
    if ply > plies {
        bail!("the game in {shown} has {plies} half-moves: --ply takes 0 to {plies}");
    }
    game.truncate(ply + 1);
    Ok(game)
}

/// Writes the pictures as SVG files. If there are two explanations, the names of their files begin
/// with 1 and 2.
fn save_pictures(folder: &Path, explanations: &[Explanation]) -> anyhow::Result<()> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {shown}"))?;
    for (number, explanation) in explanations.iter().enumerate() {
        for (name, svg) in pictures(explanation) {
            let name = match explanations.len() {
                1 => name,
                _ => format!("{}-{name}", number + 1),
            };
            save(&folder.join(name).with_extension("svg"), svg)?;
        }
    }
    Ok(())
}
