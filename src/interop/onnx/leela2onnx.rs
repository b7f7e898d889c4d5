//! ONNX as Lc0's converter `leela2onnx` writes it, taken back to Lc0's family.
//!
//! The converter names tensors by their place in the network. By those names the
//! weights are found again, and by their shapes the architecture. The network is
//! then held against the graph on random planes: only one that computes the same
//! is taken for it. Names follow Lc0 0.33's converter.

use crate::network::graph::GraphConfig;
use crate::network::lc0::{
    AttentionBody, EncoderConfig, HeadChoice, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
use crate::network::{Activation, Architecture, Graph, Lc0, Network, Output, Positions, Weights};
use std::collections::BTreeMap;
use tch::{Device, Kind, Tensor};

/// Positions of random planes on which graph and network are compared.
const COMPARED: i64 = 8;
/// How far their outputs may be apart, of numbers of about 1: the converter may
/// have rounded weights and constants to half precision.
const TOLERANCE: f64 = 0.02;
/// Input planes.
const PLANES: i64 = 112;

/// The network of Lc0's family that a graph is; `None` if it is none, or another.
pub(super) fn recognise(network: &Network) -> Option<Network> {
    let graph: &Graph = network.downcast()?;
    let converted = Converted::new(graph.model(), network);
    let config = converted.config()?;
    let architecture = Lc0::new(&config, HeadChoice::default(), Device::Cpu).ok()?;
    let tensors = architecture.parameters().iter().map(|parameter| {
        let tensor = converted.parameter(&parameter.name, &parameter.shape)?;
        Some((parameter.name.clone(), tensor))
    });
    let tensors = tensors.collect::<Option<Vec<_>>>()?;
    let found: Network = Network {
        weights: Weights::take(architecture.parameters(), tensors).ok()?,
        architecture: Box::new(architecture),
        about: network.about.clone(),
    };
    computes_the_same(network, &found).then_some(found)
}

/// Whether both networks have the same outputs, and the same numbers there.
fn computes_the_same(graph: &Network, network: &Network) -> bool {
    let outputs = |network: &Network| network.architecture.interface().outputs;
    let names = outputs(graph);
    if names.len() != outputs(network).len() {
        return false;
    }
    let _guard = tch::no_grad_guard();
    let planes = random_planes();
    let evaluate = |network: &Network| network.forward(Positions::Planes(&[planes.copy()]));
    let of_network: BTreeMap<&str, Tensor> = outputs(network)
        .into_iter()
        .map(Output::name)
        .zip(evaluate(network))
        .collect();
    names
        .into_iter()
        .zip(evaluate(graph))
        .all(|(output, left)| {
            let Some(right) = of_network.get(output.name()) else {
                return false;
            };
            let comparable = |tensor: &Tensor| match output {
                Output::Wdl => tensor.softmax(-1, Kind::Float),
                Output::MovesLeft => tensor / 100.0,
                _ => tensor.shallow_clone(),
            };
            let (left, right) = (comparable(&left), comparable(right));
            let size = left.abs().max().double_value(&[]).max(1.0);
            left.size() == right.size()
                && (left - right).abs().max().double_value(&[]) <= TOLERANCE * size
        })
}

/// Planes [B, 112, 8, 8] of zeros and ones, a fifth of them ones, the same each
/// time and without a draw from libtorch's generator.
fn random_planes() -> Tensor {
    let numbers = Tensor::arange(COMPARED * PLANES * 64, (Kind::Int64, Device::Cpu));
    let mixed = (&numbers * 2_654_435_761 + 12_345).remainder(1_000_003) * 7_919;
    let ones = mixed.remainder(5).eq(0).to_kind(Kind::Float);
    ones.view([COMPARED, PLANES, 8, 8])
}

/// A graph's tensors and operators by the converter's names.
struct Converted<'a> {
    config: &'a GraphConfig,
    tensors: BTreeMap<&'a str, Tensor>,
}

impl<'a> Converted<'a> {
    fn new(config: &'a GraphConfig, network: &Network) -> Converted<'a> {
        let stored: BTreeMap<String, Tensor> = network
            .parameters()
            .into_iter()
            .chain(network.architecture.buffers())
            .collect();
        let tensors = config
            .tensors
            .iter()
            .filter_map(|(name, place)| Some((name.as_str(), stored.get(place)?.shallow_clone())));
        Converted {
            tensors: tensors.collect(),
            config,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// One of the sizes of a tensor.
    fn size(&self, name: &str, axis: usize) -> Option<i64> {
        self.tensors.get(name)?.size().get(axis).copied()
    }

    /// How many layers there are, by the name of a tensor that each has.
    fn count(&self, name: impl Fn(i64) -> String) -> i64 {
        (0..).take_while(|&number| self.has(&name(number))).count() as i64
    }

    /// The activation at a place, by the operators that make it up.
    fn activation(&self, place: &str) -> Activation {
        let kinds = [
            ("/sqrrelu/", Activation::Relu2),
            ("/relu", Activation::Relu),
            ("/mish", Activation::Mish),
            ("/selu", Activation::Selu),
            ("/swish", Activation::Swish),
        ];
        let is_there = |(kind, _): &&(&str, Activation)| {
            let start = format!("{place}{kind}");
            let mut outputs = self.config.nodes.iter().flat_map(|node| &node.outputs);
            outputs.any(|output| output.starts_with(&start))
        };
        kinds
            .iter()
            .find(is_there)
            .map_or(Activation::None, |(_, activation)| *activation)
    }

    /// The architecture, read off names and shapes.
    fn config(&self) -> Option<Lc0Config> {
        let blocks = self.count(|block| format!("/block{block}/conv1/w/kernel"));
        let tower = match self.size("/inputconv/w/kernel", 0) {
            Some(filters) if blocks > 0 => Some(Tower {
                blocks,
                filters,
                squeeze: self.size("/block0/conv2/se/matmul1/w", 1),
            }),
            _ => None,
        };
        let layers = self.count(|layer| format!("/encoder{layer}/mha/Q/w/w"));
        let attention = match layers {
            0 => None,
            _ => Some(self.body(layers, tower.is_some())?),
        };
        let activation = match &attention {
            Some(_) => self.activation("/attn_body"),
            None => self.activation("/inputconv"),
        };
        let has_body = attention.is_some();
        Some(Lc0Config {
            input_format: self.config.input_format,
            activation,
            tower,
            attention,
            policy: self.policy()?,
            value: [(ValueHead::Winner, self.value(has_body)?)].into(),
            moves_left: self.size("/mlh/dense1/matmul/w", 1).and_then(|hidden| {
                let features = self.features("/mlh", has_body)?;
                Some(MovesLeftConfig { features, hidden })
            }),
        })
    }

    /// Features of each square that a head reads.
    fn features(&self, head: &str, has_body: bool) -> Option<i64> {
        match has_body {
            true => self.size(&format!("{head}/embed/matmul/w"), 1),
            false => self.size(&format!("{head}/conv/w/kernel"), 0),
        }
    }

    fn body(&self, layers: i64, has_tower: bool) -> Option<AttentionBody> {
        let (inputs, width) = (
            self.size("/attn_body/matmul/w", 0)?,
            self.size("/attn_body/matmul/w", 1)?,
        );
        let embedding = if has_tower {
            SquareEmbedding::Tower
        } else if self.has("/attn_body/embedding/preprocess/matmul/w") {
            SquareEmbedding::Dense {
                board: inputs - PLANES,
                feed_forward: self.size("/attn_body/ffn/dense1/w/w", 1)?,
            }
        } else {
            SquareEmbedding::Map
        };
        Some(AttentionBody {
            width,
            embedding,
            gates: self.has("/ip_mul_gate/w") && self.has("/ip_add_gate/w"),
            encoder: self.encoder("/encoder", layers)?,
            smolgen_activation: self.activation("/encoder0/smolgen/dense1"),
            feed_forward_activation: self.activation("/encoder0/ffn/dense1"),
        })
    }

    fn encoder(&self, path: &str, layers: i64) -> Option<EncoderConfig> {
        let at = |name: &str| format!("{path}0/{name}");
        // [batch, squares, heads, head width].
        let shape = self
            .tensors
            .get(format!("/const{path}0/mha/shape").as_str())?;
        let heads = shape.f_int64_value(&[2]).ok()?;
        let compress = self.size(&at("smolgen/compress/w"), 1);
        let smolgen = compress.and_then(|compress| {
            Some(SmolgenConfig {
                compress,
                hidden: self.size(&at("smolgen/dense1/w/w"), 1)?,
                generator: self.size("/const/smolgen_w", 0)?,
            })
        });
        Some(EncoderConfig {
            layers,
            heads,
            attention: self.size(&at("mha/Q/w/w"), 1)?,
            feed_forward: self.size(&at("ffn/dense1/w/w"), 1)?,
            smolgen,
        })
    }

    fn policy(&self) -> Option<PolicyConfig> {
        let (embedding, head) = if let Some(width) = self.size("/policy/Q/matmul/w", 1) {
            let layers = self.count(|layer| format!("/policy/enc_layer_{layer}/mha/Q/w/w"));
            let encoder = match layers {
                0 => None,
                _ => Some(self.encoder("/policy/enc_layer_", layers)?),
            };
            let head = PolicyHeadConfig::Attention {
                embedding: None,
                encoder,
                width,
            };
            (self.size("/policy/dense1/matmul/w", 1), head)
        } else if let Some(channels) = self.size("/policy/conv2/w/kernel", 0) {
            (None, PolicyHeadConfig::Convolutional { channels })
        } else {
            let channels = self.size("/policy/conv/w/kernel", 0)?;
            (None, PolicyHeadConfig::Classical { channels })
        };
        Some(PolicyConfig {
            embedding,
            heads: [(PolicyHead::Vanilla, head)].into(),
        })
    }

    fn value(&self, has_body: bool) -> Option<ValueHeadConfig> {
        Some(ValueHeadConfig {
            features: self.features("/value", has_body)?,
            hidden: self.size("/value/dense1/matmul/w", 1)?,
            wdl: self.size("/value/dense2/matmul/w", 1)? == 3,
            error: false,
            buckets: None,
        })
    }

    /// The tensor of a parameter in its shape. Factors of products stand transposed,
    /// kernels of 1 × 1 have two sizes more than the matrices they are.
    fn parameter(&self, name: &str, shape: &[i64]) -> Option<Tensor> {
        let source = source(name)?;
        let replaced = |weight: [&str; 2], bias: [&str; 2]| {
            source
                .replace(weight[0], weight[1])
                .replace(bias[0], bias[1])
        };
        let names = [
            // Heads read bodies by a product, towers by a convolution.
            replaced(
                ["/conv/w/kernel", "/embed/matmul/w"],
                ["/conv/w/bias", "/embed/add/w"],
            ),
            // Norms taken apart.
            replaced(["/w/scale", "/gammas/w"], ["/w/bias", "/betas/w"]),
            source,
        ];
        let tensor = names
            .iter()
            .find_map(|name| self.tensors.get(name.as_str()))?;
        let tensor = match tensor.dim() {
            2 => tensor.transpose(0, 1),
            _ => tensor.shallow_clone(),
        };
        let count: i64 = shape.iter().product();
        (count == tensor.numel() as i64).then(|| tensor.contiguous().view(shape))
    }
}

/// The converter's name for a parameter.
fn source(name: &str) -> Option<String> {
    let (module, kind) = name.rsplit_once('.')?;
    let is_weight = kind == "weight";
    let pick = |weight: &str, bias: &str| if is_weight { weight } else { bias }.to_owned();
    let kernel = || pick("w/kernel", "w/bias");
    let dense = || pick("matmul/w", "add/w");
    let factor = || pick("w/w", "b/w");
    let norm = || pick("w/scale", "w/bias");
    if let Some(rest) = module.strip_prefix("body.") {
        let (block, layer) = rest.split_once('.')?;
        let place = match layer {
            "squeeze" => format!("conv2/se/{}", pick("matmul1/w", "add1/w")),
            "excite" => format!("conv2/se/{}", pick("matmul2/w", "add2/w")),
            convolution => format!("{convolution}/{}", kernel()),
        };
        return Some(format!("/block{block}/{place}"));
    }
    if let Some(rest) = module.strip_prefix("policy.vanilla.encoder.") {
        return Some(format!("/policy/enc_layer_{}", layer(rest, is_weight)?));
    }
    if let Some(rest) = module.strip_prefix("encoder.") {
        return Some(format!("/encoder{}", layer(rest, is_weight)?));
    }
    Some(match (module, kind) {
        ("smolgen", _) => "/const/smolgen_w".to_owned(),
        ("input", _) => format!("/inputconv/{}", kernel()),
        ("embedding", "multiply") => "/ip_mul_gate/w".to_owned(),
        ("embedding", "add") => "/ip_add_gate/w".to_owned(),
        ("embedding.board", _) => format!("/attn_body/embedding/preprocess/{}", dense()),
        ("embedding.project", _) => format!("/attn_body/{}", dense()),
        ("embedding.norm", _) => format!("/attn_body/ln/{}", norm()),
        ("embedding.feed_forward.widen", _) => format!("/attn_body/ffn/dense1/{}", factor()),
        ("embedding.feed_forward.narrow", _) => format!("/attn_body/ffn/dense2/{}", factor()),
        ("embedding.feed_forward.norm", _) => format!("/attn_body/ln2/{}", norm()),
        ("policy.embedding", _) => format!("/policy/dense1/{}", dense()),
        ("policy.vanilla.query", _) => format!("/policy/Q/{}", dense()),
        ("policy.vanilla.key", _) => format!("/policy/K/{}", dense()),
        ("policy.vanilla.promotion", _) => "/policy/promotion/matmul/w".to_owned(),
        ("policy.vanilla.conv1", _) => format!("/policy/conv1/{}", kernel()),
        ("policy.vanilla.conv2", _) => format!("/policy/conv2/{}", kernel()),
        ("policy.vanilla.squares", _) => format!("/policy/conv/{}", kernel()),
        // The last sum is the output itself.
        ("policy.vanilla.moves", _) => pick("/policy/dense/matmul/w", "/output/policy/w"),
        (head, _) => {
            let (head, part) = head.rsplit_once('.')?;
            let head = match head {
                "value.winner" => "/value",
                "moves_left" => "/mlh",
                _ => return None,
            };
            return Some(match part {
                "hidden" => format!("{head}/dense1/{}", dense()),
                "output" => format!("{head}/dense2/{}", dense()),
                _ => format!("{head}/conv/{}", kernel()),
            });
        }
    })
}

/// What follows the path of an encoder in the name of one of its parameters:
/// `3.attention.query` is `3/mha/Q/w/w`.
fn layer(rest: &str, is_weight: bool) -> Option<String> {
    let (number, module) = rest.split_once('.')?;
    let pick = |weight: &str, bias: &str| if is_weight { weight } else { bias }.to_owned();
    let (place, kind) = match module {
        "attention.query" => ("mha/Q", "factor"),
        "attention.key" => ("mha/K", "factor"),
        "attention.value" => ("mha/V", "factor"),
        "attention.output" => ("mha/out/dense", "factor"),
        "attention.norm" => ("ln1", "norm"),
        "smolgen.squares" => ("smolgen/compress", "alone"),
        "smolgen.summary" => ("smolgen/dense1", "factor"),
        "smolgen.summary_norm" => ("smolgen/ln1", "norm"),
        "smolgen.heads" => ("smolgen/dense2", "factor"),
        "smolgen.heads_norm" => ("smolgen/ln2", "norm"),
        "feed_forward.widen" => ("ffn/dense1", "factor"),
        "feed_forward.narrow" => ("ffn/dense2", "factor"),
        "feed_forward.norm" => ("ln2", "norm"),
        _ => return None,
    };
    let end = match kind {
        "factor" => pick("w/w", "b/w"),
        "norm" => pick("w/scale", "w/bias"),
        _ => "w".to_owned(),
    };
    Some(format!("{number}/{place}/{end}"))
}
