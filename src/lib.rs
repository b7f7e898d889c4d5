//! Tessera is a chess engine whose whole search runs on Chessformer networks, together with the
//! trainer for those networks. A Chessformer reads the board as 64 tokens, one per square; a
//! tessera is one tile of a mosaic.
//!
//! Two binaries are thin shells over this library: `tessera` speaks UCI and measures players, and
//! `tessera-train` trains networks from games.
//!
//! # The map
//!
//! Modules are listed from the bottom up; each uses only modules above it.
//!
//! | module | purpose |
//! |---|---|
//! | [`exit`] | ends a program without libtorch's exit handlers |
//! | [`error_report`] | error messages, each on one line |
//! | [`softmax`] | from logits to probabilities |
//! | [`plural`] | numbers with their nouns |
//! | [`chess`] | a game: position, history, repetition, castling modes; everything else from shakmaty |
//! | [`tactics`] | features of moves by the rules alone: mates, exchanges, captures; a small network that corrects a policy by them |
//! | [`tablebase`] | Syzygy endgame tables: the result of a position, and the root moves that preserve it; results for king and one piece against king, without tables |
//! | [`encode`] | a game → the 112 input planes as packed bitboards; a move ↔ its index in the policy |
//! | [`backend`] | [`backend::Backend`], the evaluation interface: a batch of encoded positions → values and policy logits; caching and batching around it; two backends without a network |
//! | [`torch`] | the libtorch layer: modules and their files, bindings, CPU kernels |
//! | [`network`] | network families (Chessformer, Lc0, Maia-3), eager and differentiable, and their network files |
//! | [`inference`] | runs networks: loads a file as a backend, by the fastest way that returns right results on this machine |
//! | [`interop`] | import and export of other programs' files: Lc0 protobuf, Maia-3 checkpoints, ONNX |
//! | [`play`] | the interface of players: limits, control, reports, choice, [`play::Agent`] |
//! | [`search`] | PUCT: tree, selection, batched gathering, backup, stopping, time; depends on [`backend::Backend`], never on torch |
//! | [`agent`] | the available agents: `mcts` (a search), `policy`, `value`, `human`, `diffusion`, `world` |
//! | [`player`] | a network, its agent and their options, kept between moves; used by [`uci`] and [`serve`] |
//! | [`uci`] | parsing, the option table, the session, info lines |
//! | [`store`] | the store that the self-play loop's workers share: a folder or an object store |
//! | [`data`] | training records: PGN, Lc0 chunks, packed shards; the samples taken from them, sampling and statistics |
//! | [`train`] | objectives, optimizer, schedules, checkpoints, metrics |
//! | [`eval`] | measurement of players and networks: puzzles, test suites, people's moves, the bench |
//! | [`explain`] | a network's view of a position: attention, attribution, heads; as data, as a page and as pictures |
//! | [`engine`] | external UCI engines, run as child processes |
//! | [`openings`] | starting positions of games: books and random moves |
//! | [`version`] | the output of `--version` |
//! | [`review`] | a review of a player's own game: marks, moves of players of a rating, reasons in words; as a page, PGN, puzzles and JSON |
//! | [`adjudication`] | ends games before the rules of chess do |
//! | [`label`] | training data from external engines: games they play and positions they evaluate |
//! | [`generate`] | games written by a move-token GPT |
//! | [`selfplay`] | training data from our own engine's games against itself |
//! | [`serve`] | every agent over HTTP, and a web page for playing and analysing |
//! | [`cycle`] | the self-play loop over one store: actors, reanalysers, the learner, the gate |
//! | [`command_line`] | shared by the command lines of both programs: help in groups, time spans, networks by name |
//! | [`output`] | commands' outputs: files and streams, checked before work begins |
//! | [`overwrite`] | rejects outputs that are also inputs |
//! | [`progress`] | progress bars |
//! | [`interrupt`] | Ctrl-C and SIGTERM: the first stops a program's work, the second ends the program |
//! | [`manual`] | shell completions and manual pages |
//!
//! # The guide
//!
//! If you use the engine or are new to the code, start with the pages of the [`guide`]:
//!
//! | page | contents |
//! |---|---|
//! | [Installation](guide::install) | set-up, platforms, chess programs |
//! | [Python](guide::python) | the wheel: engine, trainer, and networks in a notebook |
//! | [Options](guide::options) | every UCI option |
//! | [Networks](guide::networks) | importing and exporting other programs' networks |
//! | [Explain](guide::explain) | attention, attribution and heads, shown on a board |
//! | [Review your games](guide::review) | `tessera review`: page, marks, people by rating, reasons |
//! | [Over HTTP](guide::serve) | `tessera serve`: page, endpoints, limits, access |
//! | [Methods](guide::methods) | how the engine and the trainer work, and the gain from each method |
//! | [Training](guide::training) | data, configuration, running, many devices |
//! | [The loop](guide::the_loop) | self-play, reanalysis, training and a gate, on one machine or many |
//! | [Formats](guide::formats) | network files, shards, games with scores, chunks, runs |
//! | [Move tokens](guide::moves) | GPTs that generate games, and their legality |
//! | [Imagined futures](guide::futures) | denoisers that imagine future positions instead of searching them |
//! | [World models](guide::worlds) | networks that look ahead without the rules, and their accuracy |
//! | [Measuring](guide::measuring) | strength, speed and training, and the match kit |
//! | [Glossary](guide::glossary) | terms |

pub mod adjudication;
pub mod agent;
mod atomic_file;
pub mod backend;
mod bounded;
pub mod chess;
pub mod command_line;
#[cfg(feature = "torch")]
pub mod cycle;
pub mod data;
pub mod encode;
pub mod engine;
pub mod error_report;
pub mod eval;
pub mod exit;
#[cfg(feature = "torch")]
pub mod explain;
#[cfg(feature = "torch")]
pub mod generate;
pub mod guide;
#[cfg(any(feature = "serve", feature = "cloud"))]
mod header_text;
pub mod inference;
#[cfg(feature = "torch")]
pub mod interop;
pub mod interrupt;
pub mod label;
pub mod manual;
#[cfg(feature = "torch")]
pub mod network;
pub mod openings;
pub mod output;
pub mod overwrite;
mod packed;
mod page;
mod panics;
pub mod play;
pub mod player;
pub mod plural;
pub mod progress;
pub mod review;
mod scoped_threads;
pub mod search;
pub mod selfplay;
#[cfg(feature = "torch")]
mod serde_default;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(test)]
#[path = "../tests/skip.rs"]
mod skip;
pub mod softmax;
pub mod store;
pub mod tablebase;
pub mod tactics;
#[cfg(feature = "torch")]
pub mod torch;
#[cfg(feature = "torch")]
pub mod train;
pub mod uci;
pub mod version;
#[cfg(test)]
#[path = "../tests/waiting.rs"]
mod waiting;
