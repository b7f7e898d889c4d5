//! The table of options, in the order in which they are listed: first those that people need, in
//! the order of their need, because chess programs show them in a list of this order.
//!
//! A row contains the option's name, its setting and the valid values. The path of a setting begins
//! at [`Settings`], unless it begins with `search`, `network` or `agent`, which stand for the
//! player's search parameters, network options and agent options.

use super::{Button, Entry, Kind, LOG_FILE};
use crate::agent::{AgentKind, LOWEST_RATING};
use crate::backend::{BackendKind, CodePolicy, Precision, shipped};
use crate::play::ScoreType;
use crate::player::HIGHEST_LEVEL;
use crate::search::{ContemptMode, FpuStrategy};
use crate::uci::Settings;
use clap::ValueEnum;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The built-in network's name for clients.
const BUILT_IN: &str = "<built-in>";

/// The highest rating that Maia-3 supports.
const MAX_ELO: i64 = 5000;

/// Clients' spin boxes hold 32-bit signed integers.
const MAX_SEED: i64 = i32::MAX as i64;

/// The valid forms of a list of devices.
const DEVICES: &str =
    "auto, cpu, cuda, cuda:1 (the device's number) or cuda:0,cuda:1 (several, at most 32)";

/// Expands to the setting at a path.
macro_rules! setting {
    ($settings:ident, search $($field:tt)+) => { $settings.player.options.search $($field)+ };
    ($settings:ident, agent $($field:tt)+) => { $settings.player.options $($field)+ };
    ($settings:ident, network $($field:tt)+) => { $settings.player.backend.network $($field)+ };
    ($settings:ident, $($field:tt)+) => { $settings.$($field)+ };
}

macro_rules! check {
    ($name:literal => $root:ident $(. $field:ident)*) => {
        check(
            $name,
            |settings| setting!(settings, $root $(. $field)*),
            |settings, value| setting!(settings, $root $(. $field)*) = value,
        )
    };
}

/// An optional fourth argument is the player's setter, for settings that are stored in two places.
macro_rules! spin {
    ($name:literal => $root:ident $(. $field:ident)*, $range:expr, $set:ident) => {
        spin(
            $name,
            $range,
            |settings| setting!(settings, $root $(. $field)*) as i64,
            |settings, value| settings.player.$set(value as _),
        )
    };
    ($name:literal => $root:ident $(. $field:ident)*, $range:expr) => {
        spin(
            $name,
            $range,
            |settings| setting!(settings, $root $(. $field)*) as i64,
            |settings, value| setting!(settings, $root $(. $field)*) = value as _,
        )
    };
}

macro_rules! decimal {
    ($name:literal => $root:ident $(. $field:ident)*, $range:expr) => {
        entry(
            $name,
            Kind::Decimal {
                range: $range,
                get: |settings| setting!(settings, $root $(. $field)*),
                set: |settings, value| setting!(settings, $root $(. $field)*) = value,
            },
        )
    };
}

macro_rules! combo {
    ($name:literal => $root:ident $(. $field:ident)*, $values:ty) => {
        combo(
            $name,
            values_of::<$values>,
            |settings| name(setting!(settings, $root $(. $field)*)),
            |settings, value| choose(&mut setting!(settings, $root $(. $field)*), value),
        )
    };
}

/// Expands to the option of a network file.
macro_rules! network_file {
    ($name:literal => $root:ident $(. $field:ident)*) => {
        text(
            $name,
            |settings| built_in_or(setting!(settings, $root $(. $field)*).as_deref()),
            |settings, value| {
                setting!(settings, $root $(. $field)*) = named(value);
                Ok(())
            },
        )
    };
}

/// All options.
pub(super) const ENTRIES: &[Entry] = &[
    // The options that people need first.
    spin!("Threads" => search.threads, 0..=1024, set_threads),
    spin(
        "Hash",
        1..=1 << 20,
        |settings| settings.player.hash() as i64,
        |settings, value| settings.player.set_hash(value as usize),
    ),
    network_file!("Net" => network.net),
    check!("UCI_LimitStrength" => player.limit_strength),
    spin!("UCI_Elo" => player.elo, LOWEST_RATING as i64..=HIGHEST_LEVEL as i64),
    spin!("MultiPV" => search.multi_pv, 1..=500),
    check!("Ponder" => ponder),
    text(
        "SyzygyPath",
        |settings| setting!(settings, search.tablebase).path().to_owned(),
        |settings, value| {
            setting!(settings, search.tablebase).set_path(value);
            Ok(())
        },
    ),
    // The session.
    spin!("Move Overhead" => search.move_overhead, 0..=10_000),
    check!("UCI_Chess960" => chess960),
    check!("UCI_AnalyseMode" => player.analyse_mode),
    check!("UCI_ShowWDL" => show_wdl),
    check!("UCI_ShowMovesLeft" => show_moves_left),
    combo!("ScoreType" => score_type, ScoreType),
    check!("VerboseMoveStats" => verbose_move_stats),
    text(
        LOG_FILE,
        |settings| shown(settings.log_file.as_deref()).unwrap_or_default(),
        |settings, value| {
            settings.log_file = (!value.is_empty()).then(|| value.into());
            Ok(())
        },
    ),
    entry("Clear Hash", Kind::Button(Button::ClearHash)),
    // The network.
    combo!("Backend" => player.backend.kind, BackendKind),
    text(
        "Device",
        |settings| setting!(settings, network.devices).to_string(),
        |settings, value| {
            setting!(settings, network.devices) = value.parse().map_err(|_| DEVICES)?;
            Ok(())
        },
    ),
    combo!("Precision" => network.precision, Precision),
    check(
        "AllowNetworkCode",
        |settings| setting!(settings, network.code) == CodePolicy::Allowed,
        |settings, value| setting!(settings, network.code) = CodePolicy::allowed_if(value),
    ),
    spin!("MinibatchSize" => search.minibatch, 0..=1024),
    // The agents.
    combo!("Agent" => player.agent, AgentKind),
    network_file!("HumanNet" => player.human_net),
    check!("HumanTime" => agent.human.takes_time),
    spin!("SelfElo" => player.self_elo, 0..=MAX_ELO),
    spin!("OppoElo" => player.opponent_elo, 0..=MAX_ELO),
    text(
        "UCI_Opponent",
        |settings| settings.player.opponent.clone(),
        |settings, value| {
            value.clone_into(&mut settings.player.opponent);
            Ok(())
        },
    ),
    decimal!("Temperature" => search.temperature, 0.0..=100.0),
    decimal!("TopP" => agent.top_p, 0.01..=1.0),
    spin!("Seed" => search.seed, 0..=MAX_SEED, set_seed),
    spin!("DiffusionSteps" => agent.diffusion.steps, 0..=100, set_diffusion_steps),
    spin!("DiffusionHorizon" => network.decoding.horizon, 0..=7),
    spin!("DiffusionTrust" => network.decoding.trust, 0..=1000),
    spin!("WorldTopK" => agent.world.top, 1..=248),
    spin!("WorldContext" => agent.world.context, 1..=1024),
    // The search.
    decimal!("CPuct" => search.cpuct, 0.0..=100.0),
    spin!("CPuctBase" => search.cpuct_base, 1..=1_000_000_000),
    decimal!("CPuctFactor" => search.cpuct_factor, 0.0..=1000.0),
    combo!("FpuStrategy" => search.fpu_strategy, FpuStrategy),
    decimal!("FpuValue" => search.fpu_value, -100.0..=100.0),
    decimal!("PolicyTemperature" => search.policy_temperature, 0.01..=100.0),
    decimal!("RootPolicyTemperature" => search.root_policy_temperature, 0.0..=100.0),
    decimal!("SmartPruningFactor" => search.smart_pruning, 0.0..=10.0),
    decimal!("LCBScale" => search.lcb_scale, 0.0..=10.0),
    decimal!("LCBMinVisits" => search.lcb_visits, 0.0..=1.0),
    spin!("CorrectionVisits" => search.correction_visits, 0..=1_000_000),
    check!("MateSearch" => search.mate_search),
    check!("Syzygy50MoveRule" => search.tablebase.fifty_move_rule),
    check!("TwoFoldDraws" => search.two_fold_draws),
    check!("Transpositions" => search.transpositions),
    spin!("MaxCollisionVisits" => search.max_collisions, 1..=1_000_000),
    decimal!("MaxOutOfOrderEvalsFactor" => search.out_of_order, 0.0..=100.0),
    decimal!("DrawScore" => search.draw_score, -1.0..=1.0),
    spin!("Contempt" => search.contempt.elo, -5000..=5000),
    combo!("ContemptMode" => search.contempt.mode, ContemptMode),
    decimal!("WDLContemptAttenuation" => search.contempt.attenuation, -10.0..=10.0),
    spin!("WDLCalibrationElo" => search.contempt.calibration_elo, 0..=10_000),
    decimal!("WDLDrawRateTarget" => search.contempt.draw_rate_target, 0.0..=0.999),
    decimal!("WDLDrawRateReference" => search.contempt.draw_rate_reference, 0.001..=0.999),
    decimal!("WDLEvalObjectivity" => search.contempt.objectivity, 0.0..=1.0),
    decimal!("DirichletNoiseEpsilon" => search.noise_epsilon, 0.0..=1.0),
    decimal!("DirichletNoiseAlpha" => search.noise_alpha, 0.001..=10000.0),
    spin!("GumbelMoves" => search.gumbel_moves, 0..=256),
    decimal!("GumbelScale" => search.gumbel_scale, 0.0..=100.0),
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
    range: RangeInclusive<i64>,
    get: fn(&Settings) -> i64,
    set: fn(&mut Settings, i64),
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

/// Returns the names of all values of a type, as on the command line.
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
    is_file.then(|| shipped::file(value))
}
