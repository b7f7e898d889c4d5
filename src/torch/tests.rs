use super::module::tests::building::BuiltModule;
use super::*;
use crate::backend::CodePolicy;
use proptest::prelude::*;
use std::sync::LazyLock;
use tch::{Device, Kind, Tensor};

#[test]
fn networks_of_other_programs_are_to_be_imported() {
    let checkpoint = {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::FileOptions::default();
        let options = options.compression_method(zip::CompressionMethod::Stored);
        zip.start_file("maia3/data.pkl", options).unwrap();
        zip.finish().unwrap().into_inner()
    };
    for policy in [CodePolicy::Checked, CodePolicy::Allowed] {
        for file in [
            &b"\x1f\x8b\x08 .pb.gz"[..],
            b"\x0d\xc0\x01\x0b\x00 .pb",
            b"\x08\x08 ONNX",
            b"\x80\x02 a pickle",
            &checkpoint,
            b"",
        ] {
            let error = open(file, policy).unwrap_err().to_string();
            assert!(error.contains("`tessera import`"), "{error}");
        }
        // The complete file would be accepted.
        let whole = tiny::network(&tiny::honest_metadata("wdl"));
        let error = open(&whole[..whole.len() - 100], policy).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("truncated or corrupt"), "{error}");
    }
}

#[test]
fn a_lack_of_memory_is_told_as_such() {
    let greedy = |numbers: &str| {
        let forward = format!("def forward(self, x): return torch.empty([{numbers}]), x");
        let mut module = BuiltModule::create("Greedy");
        module.define(&forward);
        let module = Module::from(module);
        NetworkError::from(module.forward(&Tensor::from(1i64)).unwrap_err())
    };
    let unpacked = ArchiveError::OutOfMemory(std::io::ErrorKind::OutOfMemory.into());
    for error in [greedy("1 << 50"), CheckError::Archive(unpacked).into()] {
        let told = error.to_string();
        assert!(matches!(error, NetworkError::OutOfMemory(_)), "{told}");
        assert!(
            told.starts_with("there is not enough memory for it: "),
            "{told}"
        );
    }
    assert!(matches!(greedy("-1"), NetworkError::Torch(_)));
}

static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| tiny::network(&tiny::honest_metadata("wdl")));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn half_a_file_is_no_network(length in 0..FILE.len()) {
        let error = open(&FILE[..length], CodePolicy::Checked).unwrap_err();
        prop_assert!(matches!(error, NetworkError::NotTorchScript(_)), "{}", error);
    }

    #[test]
    fn damage_is_noticed_or_harmless(place in 0..FILE.len(), bit in 0..8u32) {
        let mut file = FILE.clone();
        file[place] ^= 1u8 << bit;
        // Much of a file consists of padding and unused fields, so some changes are harmless.
        if let Ok((_, metadata)) = open(&file, CodePolicy::Checked) {
            prop_assert_eq!(metadata.hash, tiny::honest_metadata("wdl").hash);
        }
    }

    #[test]
    fn noise_is_no_network(noise in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let refused = |file: &[u8]| open(file, CodePolicy::Checked).unwrap_err();
        prop_assert!(matches!(refused(&noise), NetworkError::OtherFormat));
        let zip = [b"PK\x03\x04", &noise[..]].concat();
        prop_assert!(matches!(refused(&zip), NetworkError::NotTorchScript(_)));
    }
}

/// Returns three results for a convolution of images [3, input, …]: that of libtorch, that of the
/// frozen module, and that of libtorch in f64.
fn convolved(input: i64, output: i64, size: [i64; 2], last: bool) -> [Tensor; 3] {
    const FORWARD: &str = "def forward(self, x):\n    return torch.conv2d(x, self.weight, \
                           self.bias, [1, 1], [1, 1], [1, 1], 1)";
    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
    let weight = random(&[output, input, 3, 3]);
    let bias = random(&[output]);
    let images = match last {
        true => random(&[3, size[0], size[1], input]).permute([0, 3, 1, 2]),
        false => random(&[3, input, size[0], size[1]]),
    };
    let make = || {
        let mut module = BuiltModule::create("Convolution");
        module.register_parameter("weight", &weight);
        module.register_parameter("bias", &bias);
        module.define(FORWARD);
        Module::from(module)
    };
    let plain = make().forward(&images).unwrap().remove(0);
    let frozen = make().freeze(Device::Cpu, Kind::Float).unwrap();
    let frozen = frozen.forward(&images).unwrap().remove(0);
    let [images, weight, bias] = [&images, &weight, &bias].map(|x| x.to_kind(Kind::Double));
    let exact = images.conv2d(&weight, Some(&bias), [1, 1], [1, 1], [1, 1], 1);
    [plain, frozen, exact]
}

#[test]
fn our_convolution_of_boards_is_right_and_others_are_left_alone() {
    process::prepare();
    tch::manual_seed(3);
    let shapes = [
        (16, 16, [8, 8], true),
        (112, 64, [8, 8], true),
        (64, 80, [8, 8], true),
        // Our kernel does not support these numbers of channels, memory layouts or board sizes.
        (16, 20, [8, 8], true),
        (5, 16, [8, 8], true),
        (16, 16, [8, 8], false),
        (16, 32, [5, 9], true),
    ];
    for (input, output, size, last) in shapes {
        let [plain, frozen, exact] = convolved(input, output, size, last);
        assert_eq!(frozen.size(), exact.size());
        let off = (&frozen - &exact).abs().max().double_value(&[]);
        let scale = exact.abs().max().double_value(&[]);
        assert!(off < 1e-5 * scale, "{input} to {output}: {off} of {scale}");
        // Our kernel rounds differently, so equal results would mean that it is not in use.
        let is_ours = size == [8, 8] && last && input % 16 == 0 && output % 16 == 0;
        assert_eq!(is_ours, plain != frozen, "{input} to {output}");
    }
}
