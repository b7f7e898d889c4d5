//! The table of options, in the order in which they are listed.
//!
//! A row names the option, what it takes and the setting that it is. Paths begin at
//! [`Settings`]; `search`, `network` and `agent` stand for the player's.

use super::{Button, Entry, Kind};
use crate::agent::{AgentKind, LOWEST_RATING};
use crate::nn::{BackendKind, CodePolicy, Precision};
use crate::player::HIGHEST_LEVEL;
use crate::search::{ContemptMode, FpuStrategy};
use crate::uci::Settings;
use clap::ValueEnum;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// How clients see the network that is part of the program.
const BUILT_IN: &str = "<built-in>";

/// A strategy at the root that is none of its own.
const SAME: &str = "same";

/// The highest rating that Maia-3 knows.
const MAX_ELO: u64 = 5000;

/// Spin boxes of clients hold 32 bits with a sign.
const MAX_SEED: u64 = i32::MAX as u64;

/// What a list of devices looks like.
const DEVICES: &str =
    "auto, cpu, cuda, cuda:1 (the device's number) or cuda:0,cuda:1 (several, at most 32)";

/// The setting that a path names.
macro_rules! setting {
    ($settings:ident, search $($field:tt)+) => { $settings.player.options.search $($field)+ };
    ($settings:ident, agent $($field:tt)+) => { $settings.player.options $($field)+ };
    ($settings:ident, network $($field:tt)+) => { $settings.player.backend.network $($field)+ };
    ($settings:ident, $($field:tt)+) => { $settings.$($field)+ };
}

macro_rules! check {
    ($name:literal, $($path:tt)+) => {
        check(
            $name,
            |settings| setting!(settings, $($path)+),
            |settings, value| setting!(settings, $($path)+) = value,
        )
    };
}

macro_rules! spin {
    ($name:literal, $range:expr, $($path:tt)+) => {
        spin(
            $name,
            $range,
            |settings| setting!(settings, $($path)+) as u64,
            |settings, value| setting!(settings, $($path)+) = value as _,
        )
    };
}

macro_rules! decimal {
    ($name:literal, $range:expr, $($path:tt)+) => {
        entry(
            $name,
            Kind::Decimal {
                range: $range,
                get: |settings| setting!(settings, $($path)+),
                set: |settings, value| setting!(settings, $($path)+) = value,
            },
        )
    };
}

macro_rules! combo {
    ($name:literal, $values:ty, $($path:tt)+) => {
        combo(
            $name,
            values_of::<$values>,
            |settings| name(setting!(settings, $($path)+)),
            |settings, value| choose(&mut setting!(settings, $($path)+), value),
        )
    };
}

/// The file of a network.
macro_rules! network_file {
    ($name:literal, $($path:tt)+) => {
        text(
            $name,
            |settings| built_in_or(setting!(settings, $($path)+).as_deref()),
            |settings, value| {
                setting!(settings, $($path)+) = named(value);
                Ok(())
            },
        )
    };
}

/// Every option.
pub(super) const ENTRIES: &[Entry] = &[
    network_file!("Net", network.net),
    check(
        "AllowNetworkCode",
        |settings| setting!(settings, network.code) == CodePolicy::Allowed,
        |settings, value| setting!(settings, network.code) = CodePolicy::allowed_if(value),
    ),
    combo!("Agent", AgentKind, player.agent),
    spin(
        "DiffusionSteps",
        0..=100,
        |settings| setting!(settings, agent.diffusion.steps) as u64,
        |settings, value| settings.player.set_diffusion_steps(value as usize),
    ),
    spin!("DiffusionHorizon", 0..=7, network.decoding.horizon),
    spin!("DiffusionTrust", 0..=1000, network.decoding.trust),
    spin!("WorldTopK", 1..=248, agent.world.top),
    spin!("WorldContext", 1..=1024, agent.world.context),
    check!("UCI_LimitStrength", player.limit_strength),
    spin!(
        "UCI_Elo",
        LOWEST_RATING as u64..=HIGHEST_LEVEL as u64,
        player.elo
    ),
    text(
        "UCI_Opponent",
        |settings| settings.player.opponent.clone(),
        |settings, value| {
            value.clone_into(&mut settings.player.opponent);
            Ok(())
        },
    ),
    network_file!("HumanNet", player.human_net),
    check!("HumanTime", agent.human.takes_time),
    combo!("Backend", BackendKind, player.backend.kind),
    spin!("SelfElo", 0..=MAX_ELO, player.self_elo),
    spin!("OppoElo", 0..=MAX_ELO, player.opponent_elo),
    text(
        "Device",
        |settings| setting!(settings, network.devices).to_string(),
        |settings, value| {
            setting!(settings, network.devices) = value.parse().map_err(|_| DEVICES)?;
            Ok(())
        },
    ),
    combo!("Precision", Precision, network.precision),
    spin(
        "Threads",
        0..=1024,
        |settings| setting!(settings, search.threads) as u64,
        |settings, value| settings.player.set_threads(value as usize),
    ),
    spin(
        "Hash",
        1..=1 << 20,
        |settings| settings.player.hash() as u64,
        |settings, value| settings.player.set_hash(value as usize),
    ),
    spin!("MultiPV", 1..=500, search.multi_pv),
    check!("Ponder", ponder),
    check!("UCI_Chess960", chess960),
    check!("UCI_ShowWDL", show_wdl),
    check!("UCI_ShowMovesLeft", show_moves_left),
    check!("UCI_AnalyseMode", player.analyse_mode),
    spin!("Move Overhead", 0..=10_000, search.move_overhead),
    spin!("MinibatchSize", 0..=1024, search.minibatch),
    spin(
        "Seed",
        0..=MAX_SEED,
        |settings| setting!(settings, search.seed),
        |settings, value| settings.player.set_seed(value),
    ),
    decimal!("CPuct", 0.0..=100.0, search.cpuct),
    decimal!("CPuctBase", 1.0..=1e9, search.cpuct_base),
    decimal!("CPuctFactor", 0.0..=1000.0, search.cpuct_factor),
    check!("RootHasOwnCpuctParams", search.root_has_own_cpuct),
    decimal!("CPuctAtRoot", 0.0..=100.0, search.root_cpuct),
    decimal!("CPuctBaseAtRoot", 1.0..=1e9, search.root_cpuct_base),
    decimal!("CPuctFactorAtRoot", 0.0..=1000.0, search.root_cpuct_factor),
    combo!("FpuStrategy", FpuStrategy, search.fpu_strategy),
    decimal!("FpuValue", -100.0..=100.0, search.fpu_value),
    combo(
        "FpuStrategyAtRoot",
        || {
            let own = values_of::<FpuStrategy>();
            std::iter::once(SAME.to_owned()).chain(own).collect()
        },
        |settings| {
            setting!(settings, search.root_fpu_strategy).map_or_else(|| SAME.to_owned(), name)
        },
        |settings, value| {
            setting!(settings, search.root_fpu_strategy) = FpuStrategy::from_str(value, true).ok();
        },
    ),
    decimal!("FpuValueAtRoot", -100.0..=100.0, search.root_fpu_value),
    decimal!("DrawScore", -1.0..=1.0, search.draw_score),
    decimal!("Contempt", -5000.0..=5000.0, search.contempt.elo),
    combo!("ContemptMode", ContemptMode, search.contempt.mode),
    decimal!(
        "WDLContemptAttenuation",
        -10.0..=10.0,
        search.contempt.attenuation
    ),
    decimal!(
        "WDLCalibrationElo",
        0.0..=10_000.0,
        search.contempt.calibration_elo
    ),
    decimal!(
        "WDLDrawRateTarget",
        0.0..=0.999,
        search.contempt.draw_rate_target
    ),
    decimal!(
        "WDLDrawRateReference",
        0.001..=0.999,
        search.contempt.draw_rate_reference
    ),
    decimal!("WDLEvalObjectivity", 0.0..=1.0, search.contempt.objectivity),
    decimal!(
        "MovesLeftMaxEffect",
        0.0..=1.0,
        search.moves_left_max_effect
    ),
    decimal!("MovesLeftThreshold", 0.0..=1.0, search.moves_left_threshold),
    decimal!("MovesLeftSlope", 0.0..=1.0, search.moves_left_slope),
    decimal!(
        "MovesLeftConstantFactor",
        -1.0..=1.0,
        search.moves_left_constant
    ),
    decimal!(
        "MovesLeftScaledFactor",
        -2.0..=2.0,
        search.moves_left_scaled
    ),
    decimal!(
        "MovesLeftQuadraticFactor",
        -2.0..=2.0,
        search.moves_left_quadratic
    ),
    decimal!("PolicyTemperature", 0.01..=100.0, search.policy_temperature),
    decimal!("SmartPruningFactor", 0.0..=10.0, search.smart_pruning),
    decimal!("LCBScale", 0.0..=10.0, search.lcb_scale),
    decimal!("LCBMinVisits", 0.0..=1.0, search.lcb_visits),
    check!("MateSearch", search.mate_search),
    check!("TwoFoldDraws", search.two_fold_draws),
    check!("Transpositions", search.transpositions),
    spin!("MaxCollisionVisits", 1..=1_000_000, search.max_collisions),
    decimal!("MaxOutOfOrderEvalsFactor", 0.0..=100.0, search.out_of_order),
    decimal!(
        "RootPolicyTemperature",
        0.0..=100.0,
        search.root_policy_temperature
    ),
    decimal!("DirichletNoiseEpsilon", 0.0..=1.0, search.noise_epsilon),
    decimal!("DirichletNoiseAlpha", 0.001..=10000.0, search.noise_alpha),
    spin!("GumbelMoves", 0..=256, search.gumbel_moves),
    decimal!("GumbelScale", 0.0..=100.0, search.gumbel_scale),
    decimal!("Temperature", 0.0..=100.0, search.temperature),
    decimal!("TopP", 0.01..=1.0, agent.top_p),
    text(
        "SyzygyPath",
        |settings| setting!(settings, search.tablebase).path().to_owned(),
        |settings, value| {
            setting!(settings, search.tablebase).set_path(value);
            Ok(())
        },
    ),
    check!("Syzygy50MoveRule", search.tablebase.fifty_move_rule),
    check!("VerboseMoveStats", verbose_move_stats),
    text(
        "LogFile",
        |settings| shown(settings.log_file.as_deref()).unwrap_or_default(),
        |settings, value| {
            settings.log_file = (!value.is_empty()).then(|| value.into());
            Ok(())
        },
    ),
    entry("Clear Hash", Kind::Button(Button::ClearHash)),
];

const fn entry(name: &'static str, kind: Kind) -> Entry {
    Entry { name, kind }
}

const fn check(
    name: &'static str,
    get: fn(&Settings) -> bool,
    set: fn(&mut Settings, bool),
) -> Entry {
    entry(name, Kind::Check { get, set })
}

const fn spin(
    name: &'static str,
    range: RangeInclusive<u64>,
    get: fn(&Settings) -> u64,
    set: fn(&mut Settings, u64),
) -> Entry {
    entry(name, Kind::Spin { range, get, set })
}

const fn combo(
    name: &'static str,
    values: fn() -> Vec<String>,
    get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str),
) -> Entry {
    entry(name, Kind::Combo { values, get, set })
}

const fn text(
    name: &'static str,
    get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<(), &'static str>,
) -> Entry {
    entry(name, Kind::Text { get, set })
}

/// The names of all values of a type, as on the command line.
fn values_of<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().cloned().map(name).collect()
}

fn name<T: ValueEnum>(value: T) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn choose<T: ValueEnum>(target: &mut T, value: &str) {
    if let Ok(value) = T::from_str(value, true) {
        *target = value;
    }
}

fn shown(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

fn built_in_or(path: Option<&Path>) -> String {
    shown(path).unwrap_or_else(|| BUILT_IN.to_owned())
}

fn named(value: &str) -> Option<PathBuf> {
    let is_file = !value.is_empty() && value != BUILT_IN;
    is_file.then(|| value.into())
}
