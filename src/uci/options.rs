//! The options. One table is used to answer `uci`, to validate `setoption`, and to generate the
//! guide's page except for its last column, which describes each option.

mod table;

use super::output::excerpt;
use super::settings::Settings;
use std::ops::RangeInclusive;
use std::str::FromStr;
use table::ENTRIES;
use vampirc_uci::UciOptionConfig;

/// Number of characters of user input that an answer repeats.
const LONGEST_ECHO: usize = 100;
/// The option of the log file, which is refused if the file cannot be opened.
pub(super) const LOG_FILE: &str = "LogFile";

/// One option.
struct Entry {
    /// The option's name, which clients may write in any case.
    name: &'static str,
    /// The option's type, and its accessors in the settings.
    kind: Kind,
}

/// An option's type, with accessors to [`Settings`].
enum Kind {
    Check {
        get: fn(&Settings) -> bool,
        set: fn(&mut Settings, bool),
    },
    Spin {
        range: RangeInclusive<i64>,
        get: fn(&Settings) -> i64,
        set: fn(&mut Settings, i64),
    },
    /// A fractional number, which clients see as a string because UCI has no such type.
    Decimal {
        range: RangeInclusive<f32>,
        get: fn(&Settings) -> f32,
        set: fn(&mut Settings, f32),
    },
    Combo {
        values: fn() -> Vec<String>,
        get: fn(&Settings) -> String,
        /// Called with one of the valid values.
        set: fn(&mut Settings, &str),
    },
    Text {
        get: fn(&Settings) -> String,
        /// Returns the problem with the value, if there is one.
        set: fn(&mut Settings, &str) -> Result<(), &'static str>,
    },
    Button(Button),
}

/// The action of a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    /// Clears everything that was searched and evaluated.
    ClearHash,
}

/// The effect of a `setoption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// The button was pressed.
    Pressed(Button),
    /// The option of this name has the value.
    Changed(&'static str),
}

/// Why an option was not set; it keeps its previous value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No option has this name.
    #[error("there is no option `{0}`; `uci` lists all options")]
    Unknown(String),
    /// The value is not valid for the option.
    #[error("{name} must be {wanted}, not `{value}`")]
    Value {
        /// The option.
        name: &'static str,
        /// The value as given.
        value: String,
        /// The option's type.
        wanted: String,
        /// The value that the option keeps.
        kept: String,
    },
}

/// Sets the option `name`, in any case, to `value`, or presses the button of this name.
///
/// # Errors
/// [`OptionError`]; `settings` are then unchanged.
pub(crate) fn set(
    settings: &mut Settings,
    name: &str,
    value: Option<&str>,
) -> Result<Set, OptionError> {
    let entry = ENTRIES
        .iter()
        .find(|entry| entry.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| OptionError::Unknown(excerpt(name, LONGEST_ECHO)))?;
    if let Kind::Button(button) = entry.kind {
        return Ok(Set::Pressed(button));
    }
    // `<empty>` is UCI's notation for the empty string.
    let value = value.filter(|&value| value != "<empty>").unwrap_or("");
    entry
        .kind
        .set(settings, value)
        .map(|()| Set::Changed(entry.name))
        .map_err(|wanted| OptionError::Value {
            name: entry.name,
            value: excerpt(value, LONGEST_ECHO),
            wanted,
            kept: entry.kind.get(settings).unwrap_or_default(),
        })
}

impl Settings {
    /// Sets an option in the same way as `setoption`; its name may be in any case. Pressing a
    /// button changes nothing.
    ///
    /// # Errors
    /// [`OptionError`]; the settings are then unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        set(self, name, Some(value)).map(|_| ())
    }
}

/// Returns the options in the order in which `uci` lists them.
pub(crate) fn list() -> impl Iterator<Item = UciOptionConfig> {
    let defaults = Settings::default();
    ENTRIES.iter().map(move |entry| entry.describe(&defaults))
}

impl Entry {
    fn describe(&self, defaults: &Settings) -> UciOptionConfig {
        let name = self.name.to_owned();
        match &self.kind {
            Kind::Check { get, .. } => UciOptionConfig::Check {
                name,
                default: Some(get(defaults)),
            },
            Kind::Spin { range, get, .. } => UciOptionConfig::Spin {
                name,
                default: Some(get(defaults)),
                min: Some(*range.start()),
                max: Some(*range.end()),
            },
            Kind::Combo { values, get, .. } => UciOptionConfig::Combo {
                name,
                default: Some(get(defaults)),
                var: values(),
            },
            Kind::Decimal { .. } | Kind::Text { .. } => UciOptionConfig::String {
                name,
                default: self.kind.get(defaults).map(|value| {
                    if value.is_empty() {
                        "<empty>".to_owned()
                    } else {
                        value
                    }
                }),
            },
            Kind::Button(_) => UciOptionConfig::Button { name },
        }
    }
}

impl Kind {
    /// Returns the value in `settings` in UCI notation; buttons have no value.
    fn get(&self, settings: &Settings) -> Option<String> {
        match self {
            Kind::Check { get, .. } => Some(get(settings).to_string()),
            Kind::Spin { get, .. } => Some(get(settings).to_string()),
            Kind::Decimal { get, .. } => Some(get(settings).to_string()),
            Kind::Combo { get, .. } | Kind::Text { get, .. } => Some(get(settings)),
            Kind::Button(_) => None,
        }
    }

    /// Parses and sets a value; if the value is not valid, returns the valid ones.
    fn set(&self, settings: &mut Settings, value: &str) -> Result<(), String> {
        match self {
            Kind::Check { set, .. } => {
                let value = value.to_ascii_lowercase().parse().ok();
                value.map(|value| set(settings, value))
            }
            Kind::Spin { range, set, .. } => within(range, value).map(|value| set(settings, value)),
            Kind::Decimal { range, set, .. } => {
                within(range, value).map(|value| set(settings, value))
            }
            Kind::Combo { values, set, .. } => values()
                .iter()
                .find(|known| known.eq_ignore_ascii_case(value))
                .map(|known| set(settings, known)),
            Kind::Text { set, .. } => return set(settings, value).map_err(str::to_owned),
            Kind::Button(_) => Some(()),
        }
        .ok_or_else(|| self.values())
    }

    /// Describes the valid values.
    fn values(&self) -> String {
        match self {
            Kind::Check { .. } => "true or false".to_owned(),
            Kind::Spin { range, .. } => format!("{} to {}", range.start(), range.end()),
            Kind::Decimal { range, .. } => format!("{} to {}", range.start(), range.end()),
            Kind::Combo { values, .. } => values().join(", "),
            Kind::Text { .. } | Kind::Button(_) => String::new(),
        }
    }
}

/// Parses a number in a range.
fn within<T: FromStr + PartialOrd>(range: &RangeInclusive<T>, value: &str) -> Option<T> {
    value.parse().ok().filter(|value| range.contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentKind;
    use crate::backend::DeviceChoice;
    use proptest::prelude::*;
    use std::path::PathBuf;
    use vampirc_uci::Serializable;

    fn after(options: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in options {
            set(&mut settings, name, Some(value)).unwrap();
        }
        settings
    }

    #[test]
    fn options_reach_the_settings() {
        let settings = after(&[
            ("agent", "VALUE"),
            ("Hash", "1000"),
            ("move overhead", "35"),
            ("CPuct", "2.5"),
            ("Device", "cuda:1"),
            ("Net", "my nets/best one.pt"),
            ("Seed", "7"),
            ("UCI_Chess960", "True"),
        ]);
        assert_eq!(settings.player.agent, AgentKind::Value);
        assert_eq!(
            (
                settings.player.options.search.hash,
                settings.player.backend.cache
            ),
            (750, 250)
        );
        assert_eq!(settings.player.options.search.move_overhead, 35);
        assert_eq!(settings.player.options.search.cpuct, 2.5);
        assert_eq!(
            settings.player.backend.network.devices,
            DeviceChoice::Cuda(1).into()
        );
        assert_eq!(
            settings.player.backend.network.net,
            Some(PathBuf::from("my nets/best one.pt"))
        );
        assert_eq!(
            (
                settings.player.backend.seed,
                settings.player.options.search.seed
            ),
            (7, 7)
        );
        assert!(settings.chess960);
        let settings = after(&[
            ("Net", "x.pt"),
            ("Net", "<built-in>"),
            ("LogFile", "<empty>"),
        ]);
        assert_eq!(
            (settings.player.backend.network.net, settings.log_file),
            (None, None)
        );
    }

    #[test]
    fn analysis_thinks_to_the_end() {
        assert!(after(&[]).player.agent_options().search.smart_pruning > 0.0);
        let analysis = after(&[("UCI_AnalyseMode", "true")]);
        assert_eq!(analysis.player.agent_options().search.smart_pruning, 0.0);
    }

    #[test]
    fn every_default_can_be_set_and_changes_nothing() {
        let defaults = Settings::default();
        for entry in ENTRIES {
            let mut settings = defaults.clone();
            let value = entry.kind.get(&defaults);
            set(&mut settings, entry.name, value.as_deref()).unwrap();
            assert_eq!(settings, defaults, "{}", entry.name);
        }
    }

    #[test]
    fn every_option_can_be_changed() {
        for entry in ENTRIES {
            let defaults = Settings::default();
            let other = match &entry.kind {
                Kind::Check { get, .. } => (!get(&defaults)).to_string(),
                Kind::Spin { range, .. } => range.end().to_string(),
                Kind::Decimal { range, get, .. } => match get(&defaults) < *range.end() {
                    true => range.end().to_string(),
                    false => range.start().to_string(),
                },
                Kind::Combo { values, .. } => values().pop().unwrap(),
                Kind::Text { .. } => "cpu".to_owned(),
                Kind::Button(button) => {
                    let pressed = set(&mut defaults.clone(), entry.name, None);
                    assert_eq!(pressed, Ok(Set::Pressed(*button)));
                    continue;
                }
            };
            let mut settings = defaults.clone();
            set(&mut settings, entry.name, Some(&other)).unwrap();
            assert_ne!(settings, defaults, "{}", entry.name);
            assert_eq!(entry.kind.get(&settings), Some(other));
        }
    }

    #[test]
    fn what_is_refused_changes_nothing_and_says_why() {
        for (name, value, why) in [
            ("Hashes", "1", "no option `Hashes`"),
            ("Hash", "0", "1 to "),
            ("Hash", "-5", "1 to "),
            ("Hash", "64 MB", "64 MB"),
            ("Hash", "", "1 to "),
            ("Threads", "99999999999999999999", "0 to 1024"),
            ("Ponder", "maybe", "true or false"),
            ("Agent", "people", "mcts, policy, value, human, diffusion"),
            ("UCI_Elo", "100", "600 to "),
            ("TopP", "0", "0.01 to 1"),
            ("CPuct", "NaN", "0 to 100"),
            ("CPuct", "inf", "0 to 100"),
            ("PolicyTemperature", "0", "0.01 to 100"),
            ("Device", "gpu", "cuda"),
            ("Device", &",cpu".repeat(999)[1..], "at most 32"),
        ] {
            let mut settings = Settings::default();
            let error = set(&mut settings, name, Some(value)).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn the_list_is_what_clients_read() {
        let lines: Vec<String> = list().map(|option| option.serialize()).collect();
        assert!(lines.contains(
            &"option name Agent type combo default mcts var mcts var policy var value var human var diffusion var world"
                .to_owned()
        ));
        assert!(
            lines.contains(&"option name Hash type spin default 256 min 1 max 1048576".to_owned())
        );
        assert!(lines.contains(&"option name LogFile type string default <empty>".to_owned()));
        assert!(lines.contains(&"option name Net type string default <built-in>".to_owned()));
        assert!(lines.contains(&"option name HumanNet type string default <built-in>".to_owned()));
        assert!(lines.contains(&"option name Clear Hash type button".to_owned()));
        assert!(lines.contains(&"option name UCI_Chess960 type check default false".to_owned()));
        assert!(lines.contains(&"option name CPuct type string default 1.745".to_owned()));
        assert!(
            lines.contains(
                &"option name Contempt type spin default 0 min -5000 max 5000".to_owned()
            )
        );
    }

    #[test]
    fn the_options_that_people_need_come_first() {
        let first: Vec<&str> = ENTRIES.iter().take(8).map(|entry| entry.name).collect();
        let needed = [
            "Threads",
            "Hash",
            "Net",
            "UCI_LimitStrength",
            "UCI_Elo",
            "MultiPV",
            "Ponder",
            "SyzygyPath",
        ];
        assert_eq!(first, needed);
    }

    /// Cute Chess keeps numbers of type spin in 32 bits.
    #[test]
    fn clients_can_hold_every_spin() {
        for entry in ENTRIES {
            if let Kind::Spin { range, .. } = &entry.kind {
                let mut bounds = [range.start(), range.end()].into_iter();
                assert!(
                    bounds.all(|&it| i32::try_from(it).is_ok()),
                    "{}",
                    entry.name
                );
            }
        }
    }

    /// Returns a Markdown table of all options, with types, defaults and bounds.
    fn markdown() -> String {
        let defaults = Settings::default();
        let mut page = String::from("| option | type | default | values |\n|---|---|---|---|\n");
        for Entry { name, kind } in ENTRIES {
            let default = kind.get(&defaults).map_or_else(String::new, |value| {
                if value.is_empty() {
                    "empty".to_owned()
                } else {
                    format!("`{value}`")
                }
            });
            let type_of = match kind {
                Kind::Check { .. } => "check",
                Kind::Spin { .. } => "spin",
                Kind::Combo { .. } => "combo",
                Kind::Decimal { .. } | Kind::Text { .. } => "string",
                Kind::Button(_) => "button",
            };
            let values = kind.values();
            page.push_str(&format!(
                "| `{name}` | {type_of} | {default} | {values} |\n"
            ));
        }
        page
    }

    /// The guide adds a column of descriptions.
    #[test]
    fn the_guide_has_a_row_for_every_option() {
        let table = markdown();
        assert_eq!(table.lines().count(), ENTRIES.len() + 2);
        let guide = include_str!("../guide/options.md").replace("\r\n", "\n");
        let (_, guide) = guide.split_once("<!-- options -->\n").unwrap();
        let (guide, _) = guide.split_once("<!-- /options -->").unwrap();
        let guide: Vec<&str> = guide.trim().lines().collect();
        let is_row = |(row, columns): (&&str, &str)| {
            let explained = row.strip_prefix(columns);
            explained.is_some_and(|text| text.len() > " |".len() && text.ends_with('|'))
        };
        assert!(
            guide.len() == table.lines().count() && guide.iter().zip(table.lines()).all(is_row),
            "src/guide/options.md differs from the program's options; use this table and add what \
             each option does:\n{table}"
        );
    }

    proptest! {
        #[test]
        fn no_value_breaks_an_option(index in 0..ENTRIES.len(), value in "\\PC{0,20}|-?[0-9.e]{1,25}") {
            let mut settings = Settings::default();
            let before = settings.clone();
            if set(&mut settings, ENTRIES[index].name, Some(&value)).is_err() {
                prop_assert_eq!(settings, before);
            }
        }
    }
}
