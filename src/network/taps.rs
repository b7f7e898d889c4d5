//! Taps in a forward pass, which collect attention maps and activations by name or change one of
//! them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use tch::Tensor;

/// Collects the inner tensors of one forward pass by name:
///
/// | name | tensor |
/// |---|---|
/// | `embedding` | tokens before the first layer, [B, 64, width] |
/// | `encoder.N` | tokens after layer N, [B, 64, width] |
/// | `body.N` | tokens after block N of a tower, [B, 64, filters] |
/// | `attacks` | the attack bias of every layer's logits, [B, heads, 64, 64] |
/// | `encoder.N.attention.products` | scaled products of queries and keys, [B, heads, 64, 64] |
/// | `encoder.N.attention.bias` | the sum of the position encoding's bias and `attacks`, [B or 1, heads, 64, 64] |
/// | `encoder.N.attention.weights` | softmax of the sum of `products` and `bias`: rows are attending squares, columns attended squares |
/// | `encoder.N.feed_forward.input` | tokens that the block reads, [B, 64, width] |
/// | `encoder.N.feed_forward.hidden` | the block's hidden units after the activation, [B, 64, wide] |
/// | `encoder.N.feed_forward.output` | the block's output before the residual, [B, 64, width] |
///
/// Only requested tensors cost time. Exported networks have no taps.
#[derive(Debug, Default)]
pub struct Taps {
    taken: RefCell<BTreeMap<String, Tensor>>,
}

impl Taps {
    /// Returns the collected tensors.
    #[must_use]
    pub fn into_tensors(self) -> BTreeMap<String, Tensor> {
        self.taken.into_inner()
    }
}

/// A tensor that is added to an inner tensor of a forward pass, which continues with the sum.
#[derive(Debug)]
pub struct Addition {
    /// The name of the inner tensor: `encoder.N.feed_forward.output`.
    pub name: String,
    /// The tensor to add, of the same shape.
    pub tensor: Tensor,
}

/// A place inside a forward pass where a listener can collect or change tensors.
#[derive(Clone, Debug, Default)]
pub struct Tap<'a> {
    taps: Option<&'a Taps>,
    addition: Option<&'a Addition>,
    path: String,
}

impl<'a> Tap<'a> {
    /// Returns a tap that collects tensors into `taps`.
    pub fn into(taps: &'a Taps) -> Tap<'a> {
        Tap {
            taps: Some(taps),
            ..Tap::default()
        }
    }

    /// Returns a tap that adds `addition` to a tensor of the forward pass.
    pub fn adding(addition: &'a Addition) -> Tap<'a> {
        Tap {
            addition: Some(addition),
            ..Tap::default()
        }
    }

    /// Returns whether a listener collects tensors.
    pub(super) fn is_open(&self) -> bool {
        self.taps.is_some()
    }

    /// Returns whether a listener collects or changes tensors.
    pub(super) fn is_used(&self) -> bool {
        self.is_open() || self.addition.is_some()
    }

    /// Returns the tap for a named part of this part of the network.
    pub(super) fn scope(&self, name: impl std::fmt::Display) -> Tap<'a> {
        Tap {
            path: match self.is_used() {
                true => self.name(name),
                false => String::new(),
            },
            ..*self
        }
    }

    /// Passes a tensor to the listener, under the part's name followed by `name`, or under the
    /// part's name alone if `name` is empty.
    pub(super) fn give(&self, name: &str, tensor: &Tensor) {
        if let Some(taps) = self.taps {
            let mut taken = taps.taken.borrow_mut();
            taken.insert(self.name(name), tensor.detach());
        }
    }

    /// Returns the tensor with this name, to which the requested addition is added if it is for
    /// this tensor.
    pub(super) fn changed(&self, name: &str, tensor: Tensor) -> Tensor {
        match self.addition {
            Some(addition) if addition.name == self.name(name) => tensor + &addition.tensor,
            _ => tensor,
        }
    }

    fn name(&self, name: impl std::fmt::Display) -> String {
        let name = name.to_string();
        match (self.path.as_str(), name.as_str()) {
            ("", _) => name,
            (path, "") => path.to_owned(),
            (path, name) => format!("{path}.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::{BOARDS, Input, WIDTH};
    use crate::network::chessformer::{ModelConfig, PositionConfig};
    use crate::network::lc0::{
        AttentionBody, EncoderConfig, HeadChoice, Lc0Config, PolicyConfig, PolicyHead,
        PolicyHeadConfig, SmolgenConfig, SquareEmbedding, ValueHead, ValueHeadConfig,
    };
    use crate::network::maia3::Maia3Config;
    use crate::network::{
        About, Activation, Chessformer, Evaluator, Lc0, Maia3, Network, Output, OutputSet, Pass,
        Positions, Weights,
    };
    use crate::torch::ExportPrecision;
    use std::io::Read;
    use tch::{Device, Kind};

    const LAYERS: usize = 2;

    fn chessformer(position: PositionConfig) -> Box<dyn Evaluator> {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width) = (LAYERS as i64, 32);
        config.attack_bias = true;
        config.position = position;
        Box::new(Chessformer::new(&config, Device::Cpu).unwrap())
    }

    fn gab() -> PositionConfig {
        PositionConfig::Gab {
            compress: 4,
            hidden: 16,
            generator: 8,
        }
    }

    fn lc0() -> Box<dyn Evaluator> {
        let head = PolicyHeadConfig::Attention {
            embedding: None,
            encoder: None,
            width: 16,
        };
        let value = ValueHeadConfig {
            features: 4,
            hidden: 8,
            wdl: true,
            error: false,
            buckets: None,
        };
        let config = Lc0Config {
            input_format: 1,
            activation: Activation::Mish,
            tower: None,
            attention: Some(AttentionBody {
                width: 16,
                embedding: SquareEmbedding::Map,
                gates: true,
                encoder: EncoderConfig {
                    layers: LAYERS as i64,
                    heads: 2,
                    attention: 16,
                    feed_forward: 20,
                    smolgen: Some(SmolgenConfig {
                        compress: 3,
                        hidden: 10,
                        generator: 6,
                    }),
                },
                smolgen_activation: Activation::Swish,
                feed_forward_activation: Activation::Relu2,
            }),
            policy: PolicyConfig {
                embedding: Some(16),
                heads: [(PolicyHead::Vanilla, head)].into(),
            },
            value: [(ValueHead::Winner, value)].into(),
            moves_left: None,
        };
        Box::new(Lc0::new(&config, HeadChoice::default(), Device::Cpu).unwrap())
    }

    fn maia3() -> Box<dyn Evaluator> {
        let mut config = Maia3Config::preset("maia3-3m").unwrap();
        (config.layers, config.width, config.heads) = (LAYERS as i64, 32, 2);
        Box::new(Maia3::new(&config, Device::Cpu).unwrap())
    }

    /// Returns three positions as rows that networks of all input formats can read.
    fn rows() -> Tensor {
        let mut game = Game::default();
        let mut words: Vec<i64> = Vec::new();
        for mv in ["e2e4", "e7e5", "g1f3"] {
            let input = Input::encode(&game);
            words.extend(bytemuck::cast_slice::<u64, i64>(input.words()));
            game.play(game.parse_move(mv).unwrap());
        }
        Tensor::from_slice(&words).view([-1, WIDTH as i64])
    }

    /// Returns weights with added noise, so that none are zero.
    fn weights(architecture: &dyn Evaluator) -> Weights {
        tch::manual_seed(4);
        let flat = architecture.initial_weights();
        let flat = &flat + flat.randn_like() * 0.05;
        Weights::from_flat(&flat, architecture.parameters())
    }

    fn off(left: &Tensor, right: &Tensor) -> f64 {
        (left - right).abs().max().double_value(&[])
    }

    #[test]
    fn taps_show_what_the_network_computes() {
        let _guard = tch::no_grad_guard();
        let architectures = [
            chessformer(gab()),
            chessformer(PositionConfig::Relative),
            chessformer(PositionConfig::Shaw),
            lc0(),
            maia3(),
        ];
        for architecture in architectures {
            let weights = weights(&*architecture);
            let rows = rows();
            let rows = match architecture.interface().scalars.len() {
                2 => rows.narrow(1, 0, BOARDS as i64 + 2),
                _ => rows,
            };
            let pass = Pass::new(Positions::Rows(&rows), OutputSet::all());
            let closed = architecture.forward(&weights, &pass);
            let taps = Taps::default();
            let tap = Tap::into(&taps);
            let open = architecture.forward(&weights, &Pass { tap, ..pass });
            let inside = taps.into_tensors();
            let read = architecture.read(&weights, &inside["encoder.1"], &pass);
            for output in Output::ALL.into_iter().filter(|&it| architecture.has(it)) {
                let expected = closed.get(output).unwrap();
                for found in [&open, &read] {
                    assert!(
                        off(found.get(output).unwrap(), expected) < 1e-4,
                        "{output:?}"
                    );
                }
            }
            for layer in 0..LAYERS {
                let at = |name: &str| &inside[&format!("encoder.{layer}.{name}")];
                let logits = at("attention.products") + at("attention.bias");
                let expected = logits.softmax(-1, Kind::Float);
                assert!(off(at("attention.weights"), &expected) < 1e-5);
                assert_eq!(
                    at("feed_forward.input").size(),
                    at("feed_forward.output").size()
                );
                assert!(at("feed_forward.hidden").size()[2] > 1);
            }
            assert_eq!(inside["embedding"].size(), inside["encoder.0"].size());
        }
    }

    /// Adding a constant to a block's output is equivalent to adding it to the bias of the block's
    /// last layer.
    #[test]
    fn a_network_goes_on_from_a_changed_tensor() {
        let _guard = tch::no_grad_guard();
        for architecture in [chessformer(gab()), lc0()] {
            let weights = weights(&*architecture);
            let pairs = architecture.parameters().iter().zip(weights.tensors());
            let tensors = pairs.map(|(parameter, tensor)| {
                match parameter.name == "encoder.0.feed_forward.narrow.bias" {
                    true => tensor + tensor.ones_like().cumsum(0, Kind::Float) * 0.1,
                    false => tensor.shallow_clone(),
                }
            });
            let biased = Weights::new(tensors.collect());
            let rows = rows();
            fn pass<'a>(rows: &'a Tensor, tap: Tap<'a>) -> Pass<'a> {
                Pass {
                    tap,
                    ..Pass::new(Positions::Rows(rows), OutputSet::all())
                }
            }
            let name = "encoder.0.feed_forward.output".to_owned();
            let output = |weights: &Weights| {
                let taps = Taps::default();
                architecture.forward(weights, &pass(&rows, Tap::into(&taps)));
                taps.into_tensors().remove(&name).unwrap()
            };
            let addition = Addition {
                tensor: output(&biased) - output(&weights),
                name: name.clone(),
            };
            let found = architecture.forward(&weights, &pass(&rows, Tap::adding(&addition)));
            let expected = architecture.forward(&biased, &pass(&rows, Tap::default()));
            let whole = architecture.forward(&weights, &pass(&rows, Tap::default()));
            assert!(off(found.policy(), expected.policy()) < 1e-4);
            assert!(off(found.policy(), whole.policy()) > 1e-3);
        }
    }

    /// The code in network files uses only fused attention and has no taps.
    #[test]
    fn an_exported_graph_has_no_taps() {
        let architecture = chessformer(gab());
        let flat = architecture.initial_weights();
        let about = About {
            correction: None,
            name: "test".to_owned(),
            search_value: "q".to_owned(),
            training: serde_json::Value::Null,
            licence: "unknown".to_owned(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.pt");
        let network = Network::new(architecture, &flat, about);
        network.write(ExportPrecision::F32, &path).unwrap();
        let mut archive = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
        let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
        let name = names
            .iter()
            .find(|name| name.ends_with("code/__torch__.py"));
        let mut code = String::new();
        let mut entry = archive.by_name(name.unwrap()).unwrap();
        entry.read_to_string(&mut code).unwrap();
        let count = |operator: &str| code.matches(&format!("torch.{operator}(")).count();
        assert_eq!(count("scaled_dot_product_attention"), LAYERS);
        assert_eq!((count("softmax"), count("detach")), (0, 0));
    }
}
