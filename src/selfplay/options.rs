//! Search settings for self-play, used by `tessera-train selfplay` and by the loop.

use crate::player::PlayerSettings;
use crate::uci::{self, options::OptionError};

/// Memory for a game's search tree in MiB, enough for tens of thousands of visits.
pub const HASH: usize = 16;
/// Share of noise in the root's policy without Gumbel selection; the value is AlphaZero's.
pub const NOISE: f32 = 0.25;

/// Why an option cannot be set for self-play.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchOptionError {
    /// The option does not exist, or does not accept this value.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The option does not affect how positions are searched.
    #[error(
        "`{0}` is not an option of the search, of ratings or of imagined futures; the network, \
         devices, threads, memory, tablebases, seed, temperature, noise and Gumbel's selection \
         have options of their own here"
    )]
    Elsewhere(String),
}

/// Sets UCI options, given by name and value, that affect how positions are searched.
///
/// # Errors
/// [`SearchOptionError`] for the first option that is invalid or does not affect how positions are
/// searched.
pub fn set_search_options<'a>(
    settings: &mut PlayerSettings,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), SearchOptionError> {
    let before = uci::Settings {
        player: settings.clone(),
        ..uci::Settings::default()
    };
    let mut after = before.clone();
    for (name, value) in options {
        after.set(name, value)?;
        if !differ_in_search_alone(&before, &after) {
            return Err(SearchOptionError::Elsewhere(name.to_owned()));
        }
    }
    *settings = after.player;
    Ok(())
}

fn differ_in_search_alone(before: &uci::Settings, after: &uci::Settings) -> bool {
    let (old, new) = (&before.player, &after.player);
    let mut rest = after.clone();
    rest.player.self_elo = old.self_elo;
    rest.player.opponent_elo = old.opponent_elo;
    rest.player.backend.network.decoding = old.backend.network.decoding;
    rest.player.options.diffusion = old.options.diffusion.clone();
    rest.player.options.world = old.options.world.clone();
    rest.player.options.search = old.options.search.clone();
    let (old, new) = (&old.options.search, &new.options.search);
    rest == *before
        && new.threads == old.threads
        && new.hash == old.hash
        && new.tablebase == old.tablebase
        && new.seed == old.seed
        && new.temperature == old.temperature
        && new.gumbel_moves == old.gumbel_moves
        && new.noise_epsilon == old.noise_epsilon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_search_are_set_and_others_refused() {
        let mut settings = PlayerSettings::default();
        let good = [
            ("CPuct", "2.5"),
            ("DiffusionSteps", "3"),
            ("GumbelScale", "0.5"),
            ("SelfElo", "1900"),
        ];
        set_search_options(&mut settings, good).unwrap();
        assert_eq!(settings.options.search.cpuct, 2.5);
        assert_eq!(settings.backend.network.decoding.steps, 3);
        assert_eq!(settings.self_elo, 1900);
        let kept = settings.clone();
        for (name, value) in [
            ("Net", "a.pt"),
            ("Agent", "policy"),
            ("Backend", "random"),
            ("device", "cpu"),
            ("Precision", "f32"),
            ("Threads", "3"),
            ("Hash", "3"),
            ("SyzygyPath", "tables"),
            ("Seed", "5"),
            ("Temperature", "1"),
            ("GumbelMoves", "4"),
            ("DirichletNoiseEpsilon", "0.5"),
            ("TopP", "0.5"),
            ("LogFile", "log.txt"),
            ("UCI_LimitStrength", "true"),
        ] {
            let options = [("CPuct", "1"), (name, value)];
            let error = set_search_options(&mut settings, options).unwrap_err();
            assert_eq!(error, SearchOptionError::Elsewhere(name.to_owned()));
            assert_eq!(settings, kept);
        }
        let error = set_search_options(&mut settings, [("CPuct", "x")]).unwrap_err();
        assert!(error.to_string().contains("CPuct"), "{error}");
    }
}
