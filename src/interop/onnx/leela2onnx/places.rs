//! The converter's names for a network's tensors.

/// Name suffixes of a module's weight and bias, in one or two forms.
type Ends = &'static [[&'static str; 2]];

const KERNEL: Ends = &[["/w/kernel", "/w/bias"]];
const DENSE: Ends = &[["/matmul/w", "/add/w"]];
/// A dense layer of an encoder.
const FACTOR: Ends = &[["/w/w", "/b/w"]];
/// A layer norm may be a single operator, or decomposed into several.
const NORM: Ends = &[["/w/scale", "/w/bias"], ["/gammas/w", "/betas/w"]];

/// Stacks of layers: our name prefixes, then the converter's.
const STACKS: [(&str, &str); 3] = [
    ("body.", "/block"),
    ("encoder.", "/encoder"),
    ("policy.vanilla.encoder.", "/policy/enc_layer_"),
];

/// Our module names, the converter's names, and the suffixes. Names of modules inside a stack omit
/// the stack's prefix. Heads read towers through a convolution, and attention bodies through a
/// matrix multiplication.
const MODULES: [(&str, &str, Ends); 42] = [
    ("input", "/inputconv", KERNEL),
    ("conv1", "/conv1", KERNEL),
    ("conv2", "/conv2", KERNEL),
    ("squeeze", "/conv2/se", &[["/matmul1/w", "/add1/w"]]),
    ("excite", "/conv2/se", &[["/matmul2/w", "/add2/w"]]),
    ("embedding.board", "/attn_body/embedding/preprocess", DENSE),
    ("embedding.project", "/attn_body", DENSE),
    ("gates", "/ip", &[["_mul_gate/w", "_add_gate/w"]]),
    ("embedding.norm", "/attn_body/ln", NORM),
    (
        "embedding.feed_forward.widen",
        "/attn_body/ffn/dense1",
        FACTOR,
    ),
    (
        "embedding.feed_forward.narrow",
        "/attn_body/ffn/dense2",
        FACTOR,
    ),
    ("embedding.feed_forward.norm", "/attn_body/ln2", NORM),
    ("smolgen", "/const/smolgen_w", &[["", ""]]),
    ("attention.query", "/mha/Q", FACTOR),
    ("attention.key", "/mha/K", FACTOR),
    ("attention.value", "/mha/V", FACTOR),
    ("attention.output", "/mha/out/dense", FACTOR),
    ("attention.norm", "/ln1", NORM),
    ("smolgen.squares", "/smolgen/compress", &[["/w", ""]]),
    ("smolgen.summary", "/smolgen/dense1", FACTOR),
    ("smolgen.summary_norm", "/smolgen/ln1", NORM),
    ("smolgen.heads", "/smolgen/dense2", FACTOR),
    ("smolgen.heads_norm", "/smolgen/ln2", NORM),
    ("feed_forward.widen", "/ffn/dense1", FACTOR),
    ("feed_forward.narrow", "/ffn/dense2", FACTOR),
    ("feed_forward.norm", "/ln2", NORM),
    ("policy.embedding", "/policy/dense1", DENSE),
    ("policy.vanilla.query", "/policy/Q", DENSE),
    ("policy.vanilla.key", "/policy/K", DENSE),
    ("policy.vanilla.promotion", "/policy/promotion", DENSE),
    ("policy.vanilla.conv1", "/policy/conv1", KERNEL),
    ("policy.vanilla.conv2", "/policy/conv2", KERNEL),
    ("policy.vanilla.squares", "/policy/conv", KERNEL),
    // The last sum is itself an output.
    (
        "policy.vanilla.moves",
        "",
        &[["/policy/dense/matmul/w", "/output/policy/w"]],
    ),
    ("value.winner.squares", "/value/conv", KERNEL),
    ("value.winner.squares", "/value/embed", DENSE),
    ("value.winner.hidden", "/value/dense1", DENSE),
    ("value.winner.output", "/value/dense2", DENSE),
    ("moves_left.squares", "/mlh/conv", KERNEL),
    ("moves_left.squares", "/mlh/embed", DENSE),
    ("moves_left.hidden", "/mlh/dense1", DENSE),
    ("moves_left.output", "/mlh/dense2", DENSE),
];

/// Returns the converter's possible names for a parameter. A graph contains one of them.
pub(super) fn of(name: &str) -> impl Iterator<Item = String> {
    let (module, kind) = match name {
        "embedding.multiply" => ("gates", "weight"),
        "embedding.add" => ("gates", "bias"),
        name => name.rsplit_once('.').unwrap_or((name, "")),
    };
    let layer = STACKS.iter().find_map(|(ours, theirs)| {
        let (number, module) = module.strip_prefix(ours)?.split_once('.')?;
        Some((format!("{theirs}{number}"), module))
    });
    let (stack, module) = layer.unwrap_or((String::new(), module));
    let modules = MODULES.iter().filter(move |(ours, ..)| *ours == module);
    modules.flat_map(move |(_, place, ends)| {
        let end = usize::from(kind != "weight");
        ends.iter()
            .map(|ends| format!("{stack}{place}{}", ends[end]))
            .collect::<Vec<_>>()
    })
}
