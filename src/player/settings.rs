//! The typed settings of a player.

use super::level;
use crate::agent::{self, AgentKind, HIGHEST_RATING};
use crate::backend::{BackendOptions, BuiltIn};
use crate::chess::Ratings;
use crate::play::Limits;
use shakmaty::Color;
use std::path::PathBuf;

/// Default of `Hash`, in MiB.
const DEFAULT_HASH: usize = 256;

/// Default of `SelfElo`, `OppoElo` and `UCI_Elo`, as in Maia-3.
const DEFAULT_ELO: u16 = 1500;

/// The settings of a player.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayerSettings {
    /// The backend and its network.
    pub backend: BackendOptions,
    /// The agent that chooses moves.
    pub agent: AgentKind,
    /// The agent's options.
    pub options: agent::Options,
    /// The engine's own rating, for networks that use ratings.
    pub self_elo: u16,
    /// The opponent's rating, for networks that use ratings.
    pub opponent_elo: u16,
    /// The client's description of the opponent: title, rating, kind and name.
    pub opponent: String,
    /// Whether to limit strength to `elo`. Up to [`HIGHEST_RATING`], the player imitates people
    /// with that rating.
    pub limit_strength: bool,
    /// The level to which strength is limited.
    pub elo: u16,
    /// Maximum number of nodes per search, whatever the request allows.
    pub most_nodes: Option<u64>,
    /// The file of the human-like network; `None` uses the built-in one.
    pub human_net: Option<PathBuf>,
    /// Whether to analyse, which means searching to the limit and keeping the tree through
    /// `ucinewgame`.
    pub analyse_mode: bool,
}

impl Default for PlayerSettings {
    fn default() -> PlayerSettings {
        let mut settings = PlayerSettings {
            backend: BackendOptions::default(),
            agent: AgentKind::default(),
            options: agent::Options::default(),
            self_elo: DEFAULT_ELO,
            opponent_elo: DEFAULT_ELO,
            opponent: String::new(),
            limit_strength: false,
            elo: DEFAULT_ELO,
            most_nodes: None,
            human_net: None,
            analyse_mode: false,
        };
        settings.set_hash(DEFAULT_HASH);
        settings
    }
}

impl PlayerSettings {
    /// Returns the agent's options in the current mode.
    pub fn agent_options(&self) -> agent::Options {
        let mut options = self.options.clone();
        if self.analyse_mode {
            options.search.smart_pruning = 0.0;
        }
        options
    }

    /// Returns the settings of the player that answers within `limits`.
    ///
    /// With limited strength, `human` replaces the agent and `elo` replaces both ratings; above
    /// human ratings, the agent is `mcts` with a short search. Analysis ignores the strength limit;
    /// several lines, `go infinite` and `UCI_AnalyseMode` count as analysis. The agent `human`
    /// plays with the human-like network, unless a network file was set together with the agent.
    pub fn answering(&self, limits: &Limits) -> PlayerSettings {
        let mut settings = self.clone();
        let analyses = self.options.search.multi_pv > 1 || limits.infinite || self.analyse_mode;
        if self.limit_strength && !analyses {
            settings.self_elo = self.elo;
            settings.opponent_elo = self.elo;
            if self.elo > HIGHEST_RATING {
                settings.agent = AgentKind::Mcts;
                settings.most_nodes = Some(level::nodes(self.elo));
                let temperature = &mut settings.options.search.temperature;
                if *temperature == 0.0 {
                    *temperature = level::TEMPERATURE;
                }
                return settings;
            }
            settings.agent = AgentKind::Human;
        }
        let network = &mut settings.backend.network;
        let is_chosen = self.agent == AgentKind::Human && network.net.is_some();
        if settings.agent == AgentKind::Human && !is_chosen {
            network.net.clone_from(&self.human_net);
            network.built_in = BuiltIn::Human;
        }
        settings
    }

    /// Returns the limits of a request, reduced to the player's level.
    pub fn limits(&self, limits: &Limits) -> Limits {
        let nodes = limits.nodes.into_iter().chain(self.most_nodes).min();
        Limits {
            nodes,
            ..limits.clone()
        }
    }

    /// Returns the players' ratings in a game in which the engine plays `color`. The
    /// client's description of the opponent takes precedence over the options.
    pub fn ratings(&self, color: Color) -> Ratings {
        // The description looks like `GM 2800 human Gary Kasparov`; the rating may be `none`.
        let rating = self.opponent.split_whitespace().nth(1);
        let rating = rating.and_then(|rating| rating.parse().ok());
        let opponent = rating.unwrap_or(self.opponent_elo);
        Ratings::of(color, self.self_elo, opponent)
    }

    /// Returns the memory of the tree and the evaluation cache together, in MiB.
    pub fn hash(&self) -> usize {
        self.options.search.hash + self.backend.cache
    }

    /// Divides `hash` MiB: a quarter for the evaluation cache and the rest for the tree. A node in
    /// the tree is worth more than a cached evaluation outside it, which is only needed again for a
    /// transposition or a new game.
    pub fn set_hash(&mut self, hash: usize) {
        self.backend.cache = hash / 4;
        self.options.search.hash = hash - self.backend.cache;
    }

    /// Sets the number of search threads, which also call the backend; with 0, the backend chooses.
    pub fn set_threads(&mut self, threads: usize) {
        self.options.search.threads = threads;
        self.backend.threads = threads;
    }

    /// Sets the number of evaluations with which networks imagine futures, for every agent. With 0,
    /// the agent `diffusion` uses the clock, and all other agents use one evaluation.
    pub fn set_diffusion_steps(&mut self, steps: usize) {
        self.options.diffusion.steps = steps;
        self.backend.network.decoding.steps = steps.max(1);
    }

    /// Sets the seed of all random numbers.
    pub fn set_seed(&mut self, seed: u64) {
        self.options.search.seed = seed;
        self.backend.seed = seed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> PlayerSettings {
        PlayerSettings {
            limit_strength: true,
            elo: 1400,
            ..PlayerSettings::default()
        }
    }

    #[test]
    fn a_limit_on_strength_leaves_analysis_alone() {
        let playing = Limits::default();
        for agent in [AgentKind::Mcts, AgentKind::Policy, AgentKind::Human] {
            let settings = PlayerSettings { agent, ..limited() };
            let answering = settings.answering(&playing);
            assert_eq!(answering.agent, AgentKind::Human);
            let ratings = answering.ratings(Color::Black);
            assert_eq!((ratings.white, ratings.black), (Some(1400), Some(1400)));
            let infinite = Limits {
                infinite: true,
                ..Limits::default()
            };
            assert_eq!(settings.answering(&infinite).agent, agent);
            let mut analysis = settings.clone();
            analysis.analyse_mode = true;
            assert_eq!(analysis.answering(&playing).agent, agent);
            let mut several = settings;
            several.options.search.multi_pv = 2;
            assert_eq!(several.answering(&playing).agent, agent);
        }
        let unlimited = PlayerSettings::default();
        assert_eq!(unlimited.answering(&playing), unlimited);
    }

    #[test]
    fn people_are_imitated_by_their_network_or_the_one_named() {
        let network = |settings: &PlayerSettings| {
            let answering = settings.answering(&Limits::default());
            let network = answering.backend.network;
            (network.net, network.built_in)
        };
        let file = |name: &str| Some(PathBuf::from(name));
        let mut settings = limited();
        assert_eq!(network(&settings), (None, BuiltIn::Human));
        settings.backend.network.net = file("strong.pt");
        assert_eq!(network(&settings), (None, BuiltIn::Human));
        settings.human_net = file("people.pt");
        assert_eq!(network(&settings).0, file("people.pt"));
        settings.agent = AgentKind::Human;
        assert_eq!(network(&settings), (file("strong.pt"), BuiltIn::Main));
        settings.limit_strength = false;
        assert_eq!(network(&settings), (file("strong.pt"), BuiltIn::Main));
        settings.backend.network.net = None;
        assert_eq!(network(&settings).0, file("people.pt"));
    }

    #[test]
    fn above_people_the_search_is_limited() {
        let level = |elo, allowed| {
            let mut settings = PlayerSettings { elo, ..limited() };
            settings.human_net = Some(PathBuf::from("people.pt"));
            let answering = settings.answering(&Limits::default());
            assert_eq!(answering.agent, AgentKind::Mcts);
            assert_eq!(answering.backend, settings.backend);
            let nodes = allowed;
            let allowed = Limits {
                nodes,
                ..Limits::default()
            };
            answering.limits(&allowed).nodes
        };
        assert!(level(2401, None).unwrap() < level(2600, None).unwrap());
        assert!(level(2600, None).unwrap() < level(3200, None).unwrap());
        assert_eq!(level(3200, Some(7)), Some(7));
        assert_eq!(limited().answering(&Limits::default()).most_nodes, None);
    }

    #[test]
    fn the_client_knows_the_opponent() {
        for (said, expected) in [
            ("GM 2800 human Gary Kasparov", 2800),
            ("none 1650 computer Other Engine", 1650),
            ("none none human Somebody", 1400),
            ("", 1400),
            ("FM -5 human Odd", 1400),
        ] {
            let mut settings = limited();
            settings.opponent = said.to_owned();
            let ratings = settings.answering(&Limits::default()).ratings(Color::White);
            assert_eq!((ratings.white, ratings.black), (Some(1400), Some(expected)));
        }
    }
}
