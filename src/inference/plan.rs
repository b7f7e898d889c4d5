//! Plans the ways in which a network may run, without trying any.

use super::candidate::{Candidate, Family};
use super::ways::factory;
use crate::backend::Way;
use crate::torch::ComputeType;
use tch::{Device, Kind};

/// Returns the ways that [`Way::Auto`] tries, in order of preference. The last one is the way that
/// is trusted most.
fn automatic(family: Family, device: Device) -> &'static [Way] {
    match (family, device) {
        (Family::Foreign, _) => &[Way::File],
        (Family::Moves, _) => &[Way::Operators],
        (_, Device::Cpu) => &[Way::Kernels],
        (Family::Diffusion, _) => &[Way::Operators],
        (Family::Chessformer | Family::Evaluator, _) => &[Way::Encoder, Way::Operators, Way::File],
    }
}

/// Returns how a network may run on a device, in order of preference. `formats` are the dtypes that
/// the machine supports, in order of preference, and `way` is the requested way.
pub(crate) fn plan(
    family: Family,
    device: Device,
    formats: &[ComputeType],
    way: Way,
) -> Vec<Candidate> {
    const F32: ComputeType = ComputeType {
        kind: Kind::Float,
        int8: false,
    };
    let ways = match &way {
        Way::Auto => automatic(family, device),
        named => std::slice::from_ref(named),
    };
    let formats: &[ComputeType] = match (family, device, formats) {
        // There are no kernels for its layers, so f32 is its fastest format.
        (Family::Moves, Device::Cpu, [_, _, ..]) => &[F32],
        _ => formats,
    };
    let mut found: Vec<Candidate> = Vec::new();
    for (&way, &dtype) in ways
        .iter()
        .flat_map(|way| formats.iter().map(move |it| (way, it)))
    {
        // Only the kernels multiply in int8.
        let int8 = dtype.int8 && way == Way::Kernels;
        let candidate = Candidate {
            way,
            dtype: ComputeType { int8, ..dtype },
        };
        let is_supported =
            factory(way).is_some_and(|it| it.supports(family, device, candidate.dtype));
        if is_supported && !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Precision;
    use crate::inference::candidate::reference;

    const CPU: Device = Device::Cpu;
    const CUDA: Device = Device::Cuda(0);

    fn dtype(name: &str) -> ComputeType {
        match name {
            // The other layers are in bf16 if the processor computes in it.
            "int8" => ComputeType {
                kind: Kind::BFloat16,
                int8: true,
            },
            "bf16" => Kind::BFloat16.into(),
            "fp16" => Kind::Half.into(),
            _ => Kind::Float.into(),
        }
    }

    #[test]
    fn the_plan_follows_family_device_format_and_the_users_wish() {
        use Family::{Chessformer, Diffusion, Evaluator, Foreign, Moves};
        let rows = [
            (
                Chessformer,
                CPU,
                "int8 bf16 f32",
                Way::Auto,
                "kernels int8, kernels bf16, kernels f32",
            ),
            (Chessformer, CPU, "int8", Way::Auto, "kernels int8"),
            (
                Evaluator,
                CPU,
                "int8 f32",
                Way::Auto,
                "kernels int8, kernels f32",
            ),
            (
                Diffusion,
                CPU,
                "int8 f32",
                Way::Auto,
                "kernels int8, kernels f32",
            ),
            (Moves, CPU, "int8 bf16 f32", Way::Auto, "operators f32"),
            (Moves, CPU, "bf16", Way::Auto, "operators bf16"),
            (
                Foreign,
                CPU,
                "int8 bf16 f32",
                Way::Auto,
                "file bf16, file f32",
            ),
            (
                Chessformer,
                CUDA,
                "fp16",
                Way::Auto,
                "encoder fp16, operators fp16, file fp16",
            ),
            (
                Chessformer,
                CUDA,
                "bf16",
                Way::Auto,
                "operators bf16, file bf16",
            ),
            (
                Evaluator,
                CUDA,
                "fp16",
                Way::Auto,
                "operators fp16, file fp16",
            ),
            (Diffusion, CUDA, "fp16", Way::Auto, "operators fp16"),
            (Moves, CUDA, "fp16", Way::Auto, "operators fp16"),
            (Foreign, CUDA, "fp16", Way::Auto, "file fp16"),
            (
                Chessformer,
                CPU,
                "int8 bf16 f32",
                Way::File,
                "file bf16, file f32",
            ),
            (Chessformer, CPU, "f32", Way::Operators, "operators f32"),
            (Chessformer, CPU, "fp16", Way::Encoder, "encoder fp16"),
            (Chessformer, CPU, "int8 bf16 f32", Way::Encoder, ""),
            (Chessformer, CPU, "fp16", Way::Kernels, ""),
            (Chessformer, CUDA, "fp16", Way::Kernels, ""),
            (Chessformer, CUDA, "fp16", Way::File, "file fp16"),
            (Evaluator, CUDA, "fp16", Way::Encoder, ""),
            (Moves, CPU, "f32", Way::File, ""),
            (Foreign, CUDA, "fp16", Way::Operators, ""),
        ];
        for (family, device, formats, way, expected) in rows {
            let formats: Vec<ComputeType> = formats.split(' ').map(dtype).collect();
            let found = plan(family, device, &formats, way);
            let named = |it: &Candidate| format!("{} {}", it.way, Precision::from(it.dtype));
            let found: Vec<String> = found.iter().map(named).collect();
            assert_eq!(
                found.join(", "),
                expected,
                "{family:?} {device:?} {formats:?} {way}"
            );
        }
    }

    #[test]
    fn the_most_trusted_way_judges_in_f32() {
        let candidates = plan(Family::Chessformer, CUDA, &[dtype("fp16")], Way::Auto);
        let judge = Candidate {
            way: Way::File,
            dtype: dtype("f32"),
        };
        assert_eq!(reference(&candidates), Some(judge));
        assert_eq!(reference(&[]), None);
    }
}
