use super::*;
use crate::backend::tests::positions;
use crate::backend::{Backend, Batch, Evaluations};
use crate::chess::Game;
use crate::encode::{Encoder, Input};
use crate::network::chessformer::{EmbeddingConfig, ModelConfig, NormKind, PositionConfig};
use crate::network::lc0::{
    AttentionBody, EncoderConfig, HeadChoice, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
use crate::network::maia3::Maia3Config;
use crate::network::{About, Activation, Chessformer, Evaluator, Lc0, Maia3, Network};
use crate::torch::{ExportPrecision, tiny};
use shakmaty::Position;
use tch::Tensor;

fn chessformer(edit: impl FnOnce(&mut ModelConfig)) -> Box<dyn Evaluator> {
    let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
    (config.layers, config.width, config.heads) = (2, 64, 2);
    (config.attacks, config.attack_bias) = (true, true);
    config.norm = NormKind::Layer;
    config.position = PositionConfig::Gab {
        compress: 4,
        hidden: 32,
        generator: 32,
    };
    edit(&mut config);
    Box::new(Chessformer::new(&config, Device::Cpu).unwrap())
}

fn value(wdl: bool) -> ValueHeadConfig {
    ValueHeadConfig {
        features: 16,
        hidden: 32,
        wdl,
        error: wdl,
        buckets: None,
    }
}

/// Returns a tower whose convolutions have one of our kernels.
fn tower() -> Box<dyn Evaluator> {
    let config = Lc0Config {
        input_format: 1,
        activation: Activation::Relu,
        tower: Some(Tower {
            blocks: 2,
            filters: 32,
            squeeze: Some(8),
        }),
        attention: None,
        policy: PolicyConfig {
            embedding: None,
            heads: [(
                PolicyHead::Vanilla,
                PolicyHeadConfig::Convolutional { channels: 80 },
            )]
            .into(),
        },
        value: [(ValueHead::Winner, value(false))].into(),
        moves_left: None,
    };
    Box::new(Lc0::new(&config, HeadChoice::default(), Device::Cpu).unwrap())
}

/// Returns an attention body with several outputs that share layers.
fn body(embedding: SquareEmbedding) -> Box<dyn Evaluator> {
    let policy = PolicyHeadConfig::Attention {
        embedding: None,
        encoder: None,
        width: 64,
    };
    let config = Lc0Config {
        input_format: 1,
        activation: Activation::Mish,
        tower: None,
        attention: Some(AttentionBody {
            width: 64,
            embedding,
            gates: true,
            encoder: EncoderConfig {
                layers: 2,
                heads: 2,
                attention: 64,
                feed_forward: 96,
                smolgen: Some(SmolgenConfig {
                    compress: 4,
                    hidden: 32,
                    generator: 32,
                }),
            },
            smolgen_activation: Activation::Swish,
            feed_forward_activation: Activation::Mish,
        }),
        policy: PolicyConfig {
            embedding: Some(64),
            heads: [PolicyHead::Vanilla, PolicyHead::Optimistic]
                .map(|head| (head, policy))
                .into(),
        },
        value: [ValueHead::Winner, ValueHead::Q, ValueHead::St]
            .map(|head| (head, value(true)))
            .into(),
        moves_left: Some(MovesLeftConfig {
            features: 8,
            hidden: 32,
        }),
    };
    Box::new(Lc0::new(&config, HeadChoice::default(), Device::Cpu).unwrap())
}

fn maia3(name: &str) -> Box<dyn Evaluator> {
    let mut config = Maia3Config::preset(name).unwrap();
    (config.layers, config.width, config.heads) = (2, 64, 2);
    Box::new(Maia3::new(&config, Device::Cpu).unwrap())
}

fn all() -> Vec<(&'static str, Box<dyn Evaluator>)> {
    let global = EmbeddingConfig::Global {
        board: 4,
        feed_forward: 64,
    };
    let dense = SquareEmbedding::Dense {
        board: 8,
        feed_forward: 64,
    };
    vec![
        ("attacks", chessformer(|_| ())),
        ("ratings", chessformer(|config| config.elo = true)),
        ("global", chessformer(|config| config.embedding = global)),
        (
            "narrow heads",
            chessformer(|config| (config.heads, config.elo) = (4, true)),
        ),
        (
            "Shaw",
            chessformer(|config| {
                config.position = PositionConfig::Shaw;
                config.norm = NormKind::Rms;
            }),
        ),
        (
            "relative",
            chessformer(|config| {
                config.position = PositionConfig::Relative;
                config.attacks = false;
            }),
        ),
        (
            "absolute",
            chessformer(|config| {
                config.position = PositionConfig::Absolute;
                config.attack_bias = false;
            }),
        ),
        ("tower", tower()),
        ("body with a map", body(SquareEmbedding::Map)),
        ("dense body", body(dense)),
        ("Maia-3", maia3("maia3-3m")),
        ("larger Maia-3", maia3("maia3-23m")),
    ]
}

/// Returns a network file with random weights.
fn file(architecture: Box<dyn Evaluator>) -> Vec<u8> {
    tch::manual_seed(3);
    let flat = architecture.initial_weights();
    let flat = &flat + flat.randn_like() * 0.05;
    let about = About {
        correction: None,
        name: "random".to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "unknown".to_owned(),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pt");
    let network = Network::new(architecture, &flat, about);
    network.write(ExportPrecision::Fp16, &path).unwrap();
    std::fs::read(path).unwrap()
}

/// Returns the positions of a game. Their number is not a multiple of the chunk size.
fn inputs(encoder: &Encoder) -> Vec<Input> {
    let mut game = Game::default();
    let mut batch = Batch::default();
    for ply in 0..11 {
        batch.push(&game, &[], encoder).unwrap();
        let moves = game.position().legal_moves();
        game.play(moves[(ply * 7 + 3) % moves.len()]);
    }
    batch.inputs().to_vec()
}

/// Returns a file's outputs, computed by the family's code and by TorchScript.
fn both(file: &[u8], precision: Precision) -> [Vec<Tensor>; 2] {
    let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
    let opened = open(file, policy, device, precision, 1).unwrap();
    let script = open_by(Way::File, file, policy, device, precision, 1).unwrap();
    assert_eq!([opened.way(), script.way()], [Way::Kernels, Way::File]);
    let inputs = inputs(&opened.properties().encoder);
    [opened, script].map(|backend| backend.forward(&inputs).unwrap())
}

/// In f32, the outputs are equal bit for bit.
#[test]
fn networks_play_as_their_files_do() {
    for (name, architecture) in all() {
        let [opened, script] = both(&file(architecture), Precision::F32);
        assert_eq!(opened, script, "{name}");
    }
}

/// In bf16, TorchScript runs on libtorch's operators, while the family's code uses our kernels.
#[test]
fn networks_play_in_bf16_nearly_as_their_files_do() {
    for (name, architecture) in all() {
        let [opened, script] = both(&file(architecture), Precision::Bf16);
        for (opened, script) in opened.iter().zip(&script) {
            // All predictions of the moves left may be 0.
            let off = (opened - script).norm() / script.norm().clamp_min(1e-3);
            assert!(off.double_value(&[]) < 0.1, "{name}: {off}");
        }
    }
}

/// Covers shipped networks, and graphs and networks of other programs.
#[test]
fn networks_of_other_families_run_by_their_files() {
    let policy = CodePolicy::Checked;
    let opened = |file: &[u8]| open(file, policy, DeviceChoice::Cpu, Precision::F32, 1).unwrap();
    for name in ["tessera-xs", "tessera-s", "tessera-human"] {
        assert_eq!(opened(&shipped(name)).way(), Way::Kernels, "{name}");
    }
    let foreign = tiny::network(&tiny::honest_metadata("wdl"));
    assert_eq!(opened(&foreign).way(), Way::File);
}

/// Returns a network file that ships.
fn shipped(name: &str) -> Vec<u8> {
    let path = format!("{}/nets/{name}.pt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// Transfers positions as to a GPU and runs our own code in its form for GPUs.
#[test]
fn shipped_networks_play_on_a_gpu_as_on_a_processor() {
    let names = ["xs", "s", "human", "world", "diffusion"].map(|name| format!("tessera-{name}"));
    let ways = [Way::Operators, Way::File];
    for (name, way) in names.iter().flat_map(|name| ways.map(|way| (name, way))) {
        if (name.as_str(), way) == ("tessera-diffusion", Way::File) {
            // The file's code does not predict futures.
            continue;
        }
        let file = shipped(name);
        let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
        let opened = |way| open_by(way, &file, policy, device, Precision::F32, 1).unwrap();
        let (exact, like_gpu) = (opened(Way::Auto), opened(way).exchanging(true));
        let program = format!("{like_gpu:?}");
        let is_folded = way == Way::Operators && name != "tessera-diffusion";
        assert_eq!(program.contains("program: Folded"), is_folded, "{program}");
        for size in [1, 8] {
            let batch = positions(size, true);
            let [whole, expected] =
                [&like_gpu, &exact].map(|backend| backend.forward(batch.inputs()).unwrap());
            for (place, (found, expected)) in whole.iter().zip(&expected).enumerate() {
                // A value near zero is relative to the range of values instead.
                let off = (found - expected).norm() / expected.norm().clamp_min(0.1);
                let off = off.double_value(&[]);
                assert!(off < 2e-5, "{name}, {way}, {size}, {place}: {off}");
            }
            // The gathered logits equal the corresponding logits of the whole policy.
            let mut gathered = Evaluations::default();
            like_gpu.evaluate(&batch, &mut gathered).unwrap();
            let policy = &whole[0];
            for index in 0..size {
                let moves = batch.moves(index).iter();
                let logits =
                    moves.map(|&mv| policy.double_value(&[index as i64, mv.into()]) as f32);
                assert!(logits.eq(gathered.logits(index).iter().copied()), "{name}");
            }
            let mut values = Evaluations::default();
            exact.evaluate(&batch, &mut values).unwrap();
            for index in 0..size {
                let (found, expected) = (gathered.value(index), values.value(index));
                let pairs = [
                    (found.q, expected.q),
                    (found.d, expected.d),
                    (found.error, expected.error),
                    (found.moves_left / 100.0, expected.moves_left / 100.0),
                ];
                assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-4), "{pairs:?}");
            }
        }
    }
}

/// Runs the encoder kernel on the CPU. Relative to f32, f16 is off by about 0.1 %.
#[test]
fn shipped_networks_play_with_the_encoder_kernel() {
    for name in ["xs", "s", "human", "world"] {
        let file = shipped(&format!("tessera-{name}"));
        let opened = |way, precision| {
            let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
            open_by(way, &file, policy, device, precision, 1).unwrap()
        };
        let exact = opened(Way::Auto, Precision::F32);
        let kernel = opened(Way::Encoder, Precision::Fp16);
        let program = format!("{kernel:?}");
        assert!(program.contains("Folded(Kernel"), "{program}");
        let batch = positions(8, true);
        let [found, expected] =
            [&kernel, &exact].map(|backend| backend.forward(batch.inputs()).unwrap());
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let off = (found - expected).norm() / expected.norm();
            let off = off.double_value(&[]);
            assert!(off < 0.01, "{name}, {place}: {off}");
        }
    }
}
