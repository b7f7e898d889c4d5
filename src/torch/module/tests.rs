pub(crate) mod building;

use super::*;
use building::BuiltModule;

impl From<BuiltModule> for Module {
    fn from(module: BuiltModule) -> Module {
        Module(NonNull::new(module.0.cast()).unwrap())
    }
}

fn doubler() -> BuiltModule {
    let mut module = BuiltModule::create("Doubler");
    let weight = Tensor::from_slice(&[2f32]);
    let index = Tensor::from_slice(&[0i64, 1]);
    module.register_parameter("weight", &weight);
    module.register_buffer("index", &index);
    module.define(
        "def forward(self, x):\n    y = x.to(self.weight.dtype) * self.weight\n    \
         return y, y[self.index]",
    );
    module
}

#[test]
fn a_module_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("doubler.pt");
    doubler().save(&path);
    let module = Module::load(&std::fs::read(&path).unwrap()).unwrap();
    let names: Vec<String> = module.tensors().unwrap().into_iter().map(|t| t.0).collect();
    assert_eq!(names, ["weight", "index"]);
    let input = Tensor::from_slice(&[1i64, 2, 3]);
    for (module, kind) in [
        (
            Module::load(&std::fs::read(&path).unwrap()).unwrap(),
            Kind::Float,
        ),
        (module, Kind::BFloat16),
    ] {
        let module = module.freeze(Device::Cpu, kind).unwrap();
        let outputs = module.forward(&input).unwrap();
        assert_eq!(outputs[0].kind(), kind);
        assert_eq!(
            Vec::<f32>::try_from(outputs[0].to_kind(Kind::Float)).unwrap(),
            [2.0, 4.0, 6.0]
        );
        assert_eq!(outputs[1].size(), [2]);
    }
}

/// Returns two results of `forward` on `input`: the result of unmodified libtorch in f32, and
/// that of the module frozen in `kind`.
fn plain_and_frozen(forward: &str, input: &Tensor, kind: Kind) -> [Vec<f32>; 2] {
    let make = || {
        let mut module = BuiltModule::create("Operators");
        let width = *input.size().last().unwrap();
        let weight = Tensor::linspace(-1, 2, width, (Kind::Float, Device::Cpu));
        module.register_parameter("weight", &weight);
        module.define(forward);
        Module::from(module)
    };
    let frozen = make().freeze(Device::Cpu, kind).unwrap();
    [(make(), Kind::Float), (frozen, kind)].map(|(module, kind)| {
        let output = &module.forward(&input.to_kind(kind)).unwrap()[0];
        assert_eq!((output.kind(), output.size()), (kind, input.size()));
        let output = output.to_kind(Kind::Float).contiguous();
        super::floats(&output).to_vec()
    })
}

const NORM: &str = "def forward(self, x):\n    \
                    return torch.rms_norm(x, [x.size(-1)], self.weight, 1e-6)";

#[test]
fn our_norm_agrees_with_that_of_libtorch() {
    for width in [1, 31, 32, 77, 256] {
        let input = Tensor::linspace(-30, 30, 64 * width, (Kind::Float, Device::Cpu));
        let input = input.view([width, 64]).transpose(0, 1).contiguous();
        for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::BFloat16, 0.02)] {
            let [plain, frozen] = plain_and_frozen(NORM, &input, kind);
            for (a, b) in plain.iter().zip(&frozen) {
                let close = (a - b).abs() <= tolerance * a.abs().max(1.0);
                assert!(close, "{kind:?} {width}: {a} {b}");
            }
            // Our kernel sums in another order, so equal results would mean that it is not in
            // use.
            let ours = kind == Kind::Float && width == 256;
            assert!(!ours || plain != frozen);
        }
    }
}

#[test]
fn our_mish_agrees_with_that_of_libtorch() {
    let input = Tensor::linspace(-30, 30, 6400, (Kind::Float, Device::Cpu)).view([100, 64]);
    let code = "def forward(self, x):\n    return torch.mish(x)";
    for (kind, tolerance) in [(Kind::Float, 1e-6), (Kind::BFloat16, 0.01)] {
        let [plain, frozen] = plain_and_frozen(code, &input, kind);
        for (a, b) in plain.iter().zip(&frozen) {
            assert!((a - b).abs() <= tolerance * a.abs().max(1.0), "{a} {b}");
        }
        // The formulas differ, so equal results would mean that our kernel is not in use.
        assert_ne!(plain, frozen);
    }
}

#[test]
fn our_norm_keeps_what_is_no_number() {
    for number in [f32::NAN, f32::INFINITY] {
        let input = Tensor::from_slice(&[number, 1.0, 1.0, 1.0]).view([2, 2]);
        let [_, out] = plain_and_frozen(NORM, &input, Kind::BFloat16);
        assert!(
            out[0].is_nan() && out[2].is_finite() && out[3].is_finite(),
            "{out:?}"
        );
    }
}

#[test]
fn a_lack_of_memory_is_known_on_every_device() {
    for (message, expected) in [
        ("std::bad_alloc", true),
        ("CUDA out of memory. Tried to allocate 20.00 GiB.", true),
        (
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory",
            true,
        ),
        ("PytorchStreamReader failed reading zip archive", false),
    ] {
        let error = TorchError(message.to_owned());
        assert_eq!(error.is_out_of_memory(), expected, "{message}");
    }
}

#[test]
fn failures_are_errors_of_one_line() {
    let module = Module::from(doubler());
    let mut unusual = BuiltModule::create("Unusual");
    unusual.define("def forward(self, x): return 'no tensor'");
    let unusual = Module::from(unusual);
    let errors = [
        module.forward(&Tensor::from(1i64)).unwrap_err(),
        module.forward(&Tensor::from_slice(&[1i64])).unwrap_err(),
        unusual.forward(&Tensor::from(1i64)).unwrap_err(),
        Module::load(b"").unwrap_err(),
        Module::load(b"PK\x03\x04 not really").unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
        println!("{message}");
    }
}
