//! Converts our own networks to Lc0's architecture.
//!
//! In Lc0's terms, Chessformers with layer norms and GAB are attention bodies with smolgen. There
//! are three differences, all of which can be folded into the weights:
//!
//! - Lc0's input for the 50-move rule counts plies; ours is the same count divided by 100.
//! - Lc0 applies Mish to the tokens before its gates, but our networks do not. Far above zero, Mish
//!   is effectively the identity. The converted bias therefore shifts the tokens far above zero, and the
//!   converted gate shifts them back.
//! - Lc0's moves-left head ends in a ReLU, but ours ends in a softplus. A ReLU shifted by the
//!   logarithm of the golden ratio differs from softplus by at most that logarithm.

use super::Lc0Error;
use crate::encode::{BOARDS, PLANES_PER_BOARD};
use crate::network::chessformer::{
    EmbeddingConfig, MOVES_LEFT_FEATURES, MOVES_LEFT_SCALE, ModelConfig, NormKind, PositionConfig,
};
use crate::network::lc0::{
    AttentionBody, EncoderConfig, HeadChoice, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, ValueHead, ValueHeadConfig,
};
use crate::network::{About, Activation, Architecture, Chessformer, Lc0, Network, Weights};
use std::collections::BTreeMap;
use tch::{Device, Kind, Tensor};

/// The plane that counts the plies of the 50-move rule, and its scale in our networks.
const RULE50: (i64, f64) = (109, 0.01);
/// The all-ones plane.
const ONES: i64 = 111;
/// Above this value, Mish is the identity to within 2e-6.
const MISH_IS_IDENTITY: f64 = 8.0;
/// Draw logit of converted heads that predict only a value. It corresponds to a probability of
/// 1e-7, and is not so large that it would impair the quantization of its tensor.
const NO_DRAW: f64 = -16.0;
/// The width of a value head's hidden layer. Lc0's converter to ONNX supports no other width.
const VALUE_HIDDEN: i64 = 128;

/// Converts a network for Lc0. Networks in Lc0's family are returned unchanged; the weights of our
/// Chessformers are rewritten.
///
/// The heads of a Chessformer become the policies `vanilla` and `soft` and the values `winner`, `q`
/// and `st`. The predicted number of plies to the end of the game changes by up to 9.6; differences
/// between two positions change by less. All other outputs are unchanged.
///
/// # Errors
/// [`Lc0Error::Inexpressible`], which names the part for which Lc0 has no fields.
pub fn for_lc0(network: Network) -> Result<Network, Lc0Error> {
    if network.downcast::<Lc0>().is_some() {
        return Ok(network);
    }
    let Some(model) = network.downcast::<Chessformer>().map(|it| &it.config) else {
        let family = network.architecture.config().family();
        let what = format!("networks of the family {family}");
        return Err(Lc0Error::Inexpressible(what));
    };
    let _guard = tch::no_grad_guard();
    let config = config_of(model)?;
    let source = Source(network.parameters().into_iter().collect());
    let mut named = source.renamed(model)?;
    source.embedding(model, &mut named)?;
    source.moves_left(&mut named)?;
    let architecture = Lc0::new(&config, HeadChoice::default(), Device::Cpu)?;
    Ok(Network {
        weights: Weights::take(architecture.parameters(), named)?,
        architecture: Box::new(architecture),
        about: About {
            correction: None,
            search_value: "wdl".to_owned(),
            ..network.about
        },
    })
}

fn config_of(model: &ModelConfig) -> Result<Lc0Config, Lc0Error> {
    let inexpressible = |what: &str| Err(Lc0Error::Inexpressible(what.to_owned()));
    if model.norm != NormKind::Layer {
        return inexpressible("root mean square norms (train with norm = \"layer\")");
    }
    if model.attacks || model.attack_bias {
        return inexpressible("attacks (train without `attacks` and `attack_bias`)");
    }
    if model.elo {
        return inexpressible("the players' ratings (train without `elo`)");
    }
    let smolgen = match model.position {
        PositionConfig::Gab {
            compress,
            hidden,
            generator,
        } => SmolgenConfig {
            compress,
            hidden,
            generator,
        },
        PositionConfig::Absolute => return inexpressible("position encodings of kind `absolute`"),
        PositionConfig::Relative => return inexpressible("position encodings of kind `relative`"),
        PositionConfig::Shaw => return inexpressible("position encodings of kind `shaw`"),
    };
    if model.embedding != EmbeddingConfig::Token {
        return inexpressible("embeddings of kind `global`: Lc0 normalises there");
    }
    if model.value_hidden != VALUE_HIDDEN {
        let what = format!(
            "value_hidden = {}: Lc0 wants {VALUE_HIDDEN}",
            model.value_hidden
        );
        return inexpressible(&what);
    }
    let policy = PolicyHeadConfig::Attention {
        embedding: None,
        encoder: None,
        width: model.width,
    };
    let policies = [
        (PolicyHead::Vanilla, true),
        (PolicyHead::Soft, model.soft_policy),
    ];
    let winner = ValueHeadConfig {
        features: model.value_features,
        hidden: model.value_hidden,
        wdl: true,
        error: false,
        buckets: None,
    };
    let reward = ValueHeadConfig {
        error: true,
        buckets: Some(model.buckets),
        ..winner
    };
    Ok(Lc0Config {
        input_format: 1,
        activation: Activation::Mish,
        tower: None,
        attention: Some(AttentionBody {
            width: model.width,
            embedding: SquareEmbedding::Map,
            gates: true,
            encoder: EncoderConfig {
                layers: model.layers,
                heads: model.heads,
                attention: model.width,
                feed_forward: model.feed_forward,
                smolgen: Some(smolgen),
            },
            smolgen_activation: Activation::Swish,
            feed_forward_activation: Activation::Mish,
        }),
        policy: PolicyConfig {
            embedding: Some(model.width),
            heads: policies
                .into_iter()
                .filter_map(|(head, is_there)| is_there.then_some((head, policy)))
                .collect(),
        },
        value: [
            (ValueHead::Winner, winner),
            (ValueHead::Q, reward),
            (ValueHead::St, reward),
        ]
        .into(),
        moves_left: Some(MovesLeftConfig {
            features: MOVES_LEFT_FEATURES,
            hidden: model.value_hidden,
        }),
    })
}

/// Modules that differ only in name: the name in a Chessformer, then the name in the Lc0 family.
/// Each has a weight and possibly a bias.
const RENAMED: [(&str, &str); 8] = [
    ("value.result.squares", "value.winner.squares"),
    ("value.result.hidden", "value.winner.hidden"),
    ("value.result.wdl", "value.winner.output"),
    ("value.short_term.squares", "value.st.squares"),
    ("value.short_term.hidden", "value.st.hidden"),
    ("value.short_term.categorical", "value.st.categorical"),
    ("value.short_term.error", "value.st.error"),
    ("encoder.gab_generator", "smolgen"),
];

/// The tensors of a Chessformer by name.
struct Source(BTreeMap<String, Tensor>);

type Named = BTreeMap<String, Tensor>;

impl Source {
    fn get(&self, name: &str) -> Result<Tensor, Lc0Error> {
        let tensor = self.0.get(name);
        let tensor = tensor.ok_or_else(|| Lc0Error::Missing(name.to_owned()))?;
        Ok(tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float))
    }

    /// Returns the tensors of the modules that are the same in both architectures, under the names
    /// in the Lc0 family.
    fn renamed(&self, model: &ModelConfig) -> Result<Named, Lc0Error> {
        let mut named = Named::new();
        for name in self.0.keys() {
            let (module, kind) = name.rsplit_once('.').unwrap_or((name, ""));
            let renamed = RENAMED.iter().find(|(ours, _)| *ours == module);
            let module = match renamed {
                Some((_, theirs)) => (*theirs).to_owned(),
                None => module.replace(".attention.position.", ".smolgen."),
            };
            named.insert(format!("{module}.{kind}"), self.get(name)?);
        }
        for layer in 0..model.layers {
            self.projections(&format!("encoder.{layer}.attention"), &mut named)?;
        }
        for policy in ["vanilla", "soft"] {
            let name = format!("policy.{policy}.promotion.weight");
            if let Some(weight) = named.get_mut(&name) {
                // Lc0's matrix has an additional row, which is added to all other rows.
                *weight = Tensor::cat(&[&*weight, &weight.narrow(0, 0, 1).zeros_like()], 0);
            }
        }
        for (ours, theirs) in [("q", "q"), ("short_term", "st")] {
            let scalar = |kind| self.get(&format!("value.{ours}.scalar.{kind}"));
            let (weight, bias) = (scalar("weight")?, scalar("bias")?);
            let output = |kind| format!("value.{theirs}.output.{kind}");
            let rows = [&weight, &weight.zeros_like(), &-&weight];
            named.insert(output("weight"), Tensor::cat(&rows, 0));
            let numbers = [&bias, &(bias.zeros_like() + NO_DRAW), &-&bias];
            named.insert(output("bias"), Tensor::cat(&numbers, 0));
        }
        Ok(named)
    }

    /// Splits our matrix for queries and keys, and adds biases of zero, because our queries, keys
    /// and values have none.
    fn projections(&self, path: &str, named: &mut Named) -> Result<(), Lc0Error> {
        let joint = self.get(&format!("{path}.query_key.weight"))?;
        let value = self.get(&format!("{path}.value.weight"))?;
        let halves = joint.chunk(2, 0);
        for (name, weight) in ["query", "key", "value"]
            .iter()
            .zip(halves.iter().chain([&value]))
        {
            let bias = Tensor::zeros([weight.size()[0]], (Kind::Float, Device::Cpu));
            named.insert(format!("{path}.{name}.weight"), weight.copy());
            named.insert(format!("{path}.{name}.bias"), bias);
        }
        Ok(())
    }

    /// See the module documentation.
    fn embedding(&self, model: &ModelConfig, named: &mut Named) -> Result<(), Lc0Error> {
        let weight = self.get("embedding.project.weight")?;
        let bias = self.get("embedding.project.bias")?;
        let multiply = self.get("embedding.multiply")?;
        let add = self.get("embedding.add")?;
        let shift = (MISH_IS_IDENTITY - least(&weight, &bias)).clamp_min(0.0);
        named.insert(
            "embedding.add".to_owned(),
            (add - &multiply * &shift).transpose(0, 1).contiguous(),
        );
        named.insert(
            "embedding.multiply".to_owned(),
            multiply.transpose(0, 1).contiguous(),
        );
        named.insert("embedding.project.bias".to_owned(), bias + shift);
        let (plane, scale) = RULE50;
        let planes = weight.copy();
        let _ = planes.narrow(1, plane, 1).g_mul_scalar_(scale);
        // Lc0's attack map, which our networks do not use.
        let map = Tensor::zeros([model.width, 64], (Kind::Float, Device::Cpu));
        named.insert(
            "embedding.project.weight".to_owned(),
            Tensor::cat(&[planes, map], 1),
        );
        Ok(())
    }

    /// Replaces softplus with a shifted ReLU. softplus(x) is between x and x + ln 2 for x ≥ 0, and
    /// between 0 and ln 2 for x < 0, so max(0, x + ln φ) differs from softplus(x) by at most ln φ.
    fn moves_left(&self, named: &mut Named) -> Result<(), Lc0Error> {
        let golden_ratio = (1.0 + 5f64.sqrt()) / 2.0;
        let weight = self.get("moves_left.plies.weight")?;
        let bias = self.get("moves_left.plies.bias")?;
        let scale = MOVES_LEFT_SCALE;
        named.insert("moves_left.output.weight".to_owned(), weight * scale);
        let bias = (bias + golden_ratio.ln()) * scale;
        named.insert("moves_left.output.bias".to_owned(), bias);
        Ok(())
    }
}

/// Returns the minimum of each token feature over all possible contents of the token's square in
/// the position and its history, with at most one piece on the square at a time.
fn least(weight: &Tensor, bias: &Tensor) -> Tensor {
    let below_zero = |weights: Tensor| weights.clamp_max(0.0);
    let mut least = bias + weight.select(1, ONES);
    for board in (0..BOARDS as i64).step_by(PLANES_PER_BOARD) {
        let pieces = PLANES_PER_BOARD as i64 - 1;
        least += below_zero(
            weight
                .narrow(1, board, pieces)
                .amin([1i64].as_slice(), false),
        );
        least += below_zero(weight.select(1, board + pieces));
    }
    for plane in BOARDS as i64..ONES {
        // Allow for 1.5 times the number of plies after which the 50-move rule applies.
        let most = if plane == RULE50.0 { 1.5 } else { 1.0 };
        least += below_zero(weight.select(1, plane)) * most;
    }
    least
}
