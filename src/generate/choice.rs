//! Collects the possible continuations of a game and samples one of them.

use super::Vocabulary;
use crate::agent::sampling::sample;
use crate::softmax::softmax;
use rand::Rng;
use shakmaty::Chess;

/// Settings for sampling tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// The sampling temperature; at 0, the likeliest token is chosen.
    pub temperature: f32,
    /// Samples only from the smallest set of likeliest tokens whose total probability is at least
    /// this.
    pub top_p: f32,
    /// Samples only tokens whose probability is at least this share of the likeliest token's
    /// probability.
    pub min_p: f32,
    /// Whether to sample only legal tokens.
    pub legal_only: bool,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            legal_only: true,
        }
    }
}

/// Candidate tokens with their logits.
pub(super) struct Choices(Vec<(u16, f32)>);

impl Choices {
    /// Returns the tokens of all legal moves, and all end tokens except mate.
    pub fn legal(position: &Chess, vocabulary: &Vocabulary, logits: &[f32]) -> Choices {
        let tokens = vocabulary.legal_tokens(position).into_iter();
        Choices(
            tokens
                .map(|token| (token, logits[usize::from(token)]))
                .collect(),
        )
    }

    /// Returns all tokens except the start token and the padding token, which never follow another
    /// token.
    pub fn all(vocabulary: &Vocabulary, logits: &[f32]) -> Choices {
        let tokens = (0..vocabulary.size() as u16)
            .filter(|&token| token != vocabulary.start() && token != vocabulary.padding());
        Choices(
            tokens
                .map(|token| (token, logits[usize::from(token)]))
                .collect(),
        )
    }

    /// Samples one of the tokens; returns `None` if the list is empty.
    pub fn draw(mut self, sampling: &Sampling, random: &mut impl Rng) -> Option<u16> {
        self.0.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut probabilities: Vec<f32> = self.0.iter().map(|&(_, logit)| logit).collect();
        softmax(&mut probabilities, 1.0);
        let least = sampling.min_p * probabilities.first()?;
        let likely = probabilities.iter().take_while(|&&it| it >= least).count();
        probabilities.truncate(likely.max(1));
        let place = match sampling.temperature > 0.0 {
            true => sample(&probabilities, sampling.temperature, sampling.top_p, random)?,
            false => 0,
        };
        Some(self.0[place].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn only_what_can_follow_is_drawn() {
        let vocabulary = Vocabulary::Uci;
        let game = Game::default();
        let logits = vec![0.0; vocabulary.size()];
        let legal = Choices::legal(game.position(), &vocabulary, &logits);
        assert_eq!(legal.0.len(), 20 + 3);
        let all = Choices::all(&vocabulary, &logits);
        assert_eq!(all.0.len(), vocabulary.size() - 2);
    }

    #[test]
    fn unlikely_tokens_can_be_left_out() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut drawn = |sampling: Sampling| {
            let mut drawn: Vec<u16> = (0..300)
                .filter_map(|_| {
                    let choices = [0.5f32, 0.3, 0.2].map(f32::ln);
                    let choices = (0..).zip(choices).collect();
                    Choices(choices).draw(&sampling, &mut random)
                })
                .collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        let usual = Sampling::default();
        assert_eq!(drawn(usual.clone()), [0, 1, 2]);
        assert_eq!(
            drawn(Sampling {
                min_p: 0.5,
                ..usual.clone()
            }),
            [0, 1]
        );
        assert_eq!(
            drawn(Sampling {
                top_p: 0.4,
                ..usual.clone()
            }),
            [0]
        );
        assert_eq!(
            drawn(Sampling {
                temperature: 0.0,
                ..usual
            }),
            [0]
        );
    }
}
