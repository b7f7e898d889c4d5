//! Runs world models for search in imagination.

use crate::backend::{BackendError, Imagination, Imagined, ImaginedBoard, Scene, Value};
use crate::network::world::{FrozenWorld, Seen};
use crate::network::{ArchitectureError, Network, OpenError, Output, WorldModel};
use crate::torch::{self, ComputeType, NetworkError, floats};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Number of scenes imagined per batch.
const BATCH: usize = 256;

/// A world model on a device.
#[derive(Debug)]
pub(super) struct WorldImagination {
    name: String,
    frozen: FrozenWorld,
    context: usize,
    bytes: usize,
}

/// Returns the format in which latents are stored: bf16 if the device computes in it, otherwise the
/// first of `formats` other than int8.
fn chosen(formats: &[ComputeType]) -> ComputeType {
    let narrow = formats
        .iter()
        .find(|it| !it.int8 && it.kind == Kind::BFloat16);
    let any = formats.iter().find(|it| !it.int8);
    let chosen = narrow.or(any).copied();
    chosen.unwrap_or(ComputeType::from(Kind::Float))
}

impl WorldImagination {
    /// Prepares a world model to imagine boards on a device that supports these formats.
    pub fn new(
        network: &Network<WorldModel>,
        device: Device,
        formats: &[ComputeType],
    ) -> Result<WorldImagination, NetworkError> {
        let (world, weights) = (&network.architecture, &network.weights);
        let frozen = FrozenWorld::new(world, weights, chosen(formats), device);
        let frozen = frozen.map_err(|error| OpenError::from(ArchitectureError::from(error)))?;
        let numbers: i64 = frozen.shape().iter().product();
        Ok(WorldImagination {
            name: network.about.name.clone(),
            context: network.architecture.config.context as usize,
            bytes: numbers as usize * frozen.kind().elt_size_in_bytes(),
            frozen,
        })
    }

    /// Encodes the scenes that are true positions and computes the others with the world model's
    /// step.
    fn see(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError> {
        let mut found: Vec<Option<Imagined>> = vec![None; scenes.len()];
        let is_present = |&place: &usize| matches!(scenes[place], Scene::Present { .. });
        let (present, after): (Vec<usize>, Vec<usize>) = (0..scenes.len()).partition(is_present);
        if !present.is_empty() {
            let seen = self.frozen.look(&rows(&present, scenes));
            self.read(&present, scenes, seen, most, &mut found)?;
        }
        if !after.is_empty() {
            let seen = self.step(&after, scenes);
            self.read(&after, scenes, seen, most, &mut found)?;
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn step(&self, places: &[usize], scenes: &[Scene]) -> Seen {
        let parts = places.iter().filter_map(|&place| match &scenes[place] {
            Scene::After { from, path, mv } => Some((from, path, *mv)),
            Scene::Present { .. } => None,
        });
        let parts: Vec<_> = parts.collect();
        let [kept, squares, width] = self.frozen.shape();
        let (rows, kind) = (parts.len() as i64, self.frozen.kind());
        let of_latents = self.bytes / kept as usize;
        let latents = parts
            .iter()
            .flat_map(|(from, ..)| &from.bytes()[..of_latents]);
        let latents: Vec<u8> = latents.copied().collect();
        let latents = Tensor::from_data_size(&latents, &[rows, squares, width], kind);
        let steps = parts.iter().map(|(_, path, _)| path.len()).max();
        let steps = steps.unwrap_or(0).min(self.context - 1);
        let board = |path: &Vec<Arc<ImaginedBoard>>, age: usize| {
            path.get(age).filter(|board| board.has_step()).cloned()
        };
        let oldest_first = || (0..steps).rev();
        let boards = parts.iter();
        let boards = boards.flat_map(|(_, path, _)| oldest_first().map(|age| board(path, age)));
        let boards: Vec<Option<Arc<ImaginedBoard>>> = boards.collect();
        let absent: Vec<bool> = boards.iter().map(Option::is_none).collect();
        let absent = Tensor::from_slice(&absent).view([rows, steps as i64]);
        let none = vec![0; self.bytes];
        let past = boards.iter();
        let past = past.flat_map(|board| board.as_ref().map_or(&none[..], |board| board.bytes()));
        let past: Vec<u8> = past.copied().collect();
        let shape = [rows, steps as i64, kept, squares, width];
        let past = Tensor::from_data_size(&past, &shape, kind).narrow(2, 1, kept - 1);
        let mut past = past.permute([2, 0, 3, 1, 4]);
        // Consecutive boards are seen from alternating sides. Each side sees the 64 squares from its
        // own view, but a single token has no squares to flip.
        if squares > 1 {
            let turned: Vec<bool> = oldest_first().map(|age| age % 2 == 0).collect();
            let turned = Tensor::from_slice(&turned).unsqueeze(1);
            let flipped = past.unflatten(2, [8, 8]).flip([2]).flatten(2, 3);
            past = flipped.where_self(&turned, &past);
        }
        let past = past.contiguous();
        let moves: Vec<i64> = parts.iter().map(|&(_, _, mv)| mv.into()).collect();
        let moves = Tensor::from_slice(&moves);
        self.frozen.step(&latents, &past, &absent, &moves)
    }

    /// Predicts the outputs for the scenes at these indices.
    fn read(
        &self,
        places: &[usize],
        scenes: &[Scene],
        mut seen: Seen,
        most: usize,
        found: &mut [Option<Imagined>],
    ) -> Result<(), BackendError> {
        let _guard = tch::no_grad_guard();
        let prior = seen.outputs.policy() + seen.rules.legality.log_sigmoid();
        let (best, entries) = prior.topk(most.max(1) as i64, -1, true, true);
        let legality = seen.rules.legality.gather(-1, &entries, false);
        let entries: Vec<i64> = Vec::try_from(entries.to_device(Device::Cpu).reshape([-1]))
            .expect("a vector of integers");
        let (best, legality) = (floats(&best), floats(&legality));
        let wants_all = places
            .iter()
            .any(|&place| matches!(scenes[place], Scene::Present { .. }));
        let all = match wants_all {
            true => floats(&prior),
            false => Vec::new(),
        };
        let wdl = floats(seen.outputs.wdl());
        let ended = floats(&seen.rules.end.sigmoid());
        let mut scalar = |output| seen.outputs.take(output).map(|it| floats(&it));
        let scalars = [Output::Q, Output::MovesLeft, Output::QError].map(&mut scalar);
        let kept = torch::bytes(&seen.kept);
        let most = most.max(1);
        for (row, &place) in places.iter().enumerate() {
            let wdl = [0, 1, 2].map(|part| wdl[3 * row + part]);
            let scalars = scalars.each_ref().map(|values| Some(values.as_ref()?[row]));
            let value = Value::of_outputs(wdl, scalars);
            let first = row * most;
            // Consider moves that are predicted to be illegal only if all are.
            let is_considered = |&at: &usize| legality[at] >= 0.0;
            let mut considered: Vec<usize> = (first..first + most).filter(is_considered).collect();
            if considered.is_empty() {
                considered.push(first);
            }
            let likeliest = considered.iter().map(|&at| (entries[at] as u16, best[at]));
            let likeliest: Vec<(u16, f32)> = likeliest.collect();
            let (logits, has_step) = match &scenes[place] {
                Scene::Present { moves, .. } => {
                    let prior = &all[row * (all.len() / places.len())..];
                    let logits = moves.iter().map(|&mv| prior[usize::from(mv)]);
                    (logits.collect(), false)
                }
                Scene::After { .. } => (Vec::new(), true),
            };
            let numbers = likeliest.iter().map(|(_, logit)| logit).chain(&logits);
            let value = value.filter(|_| numbers.copied().all(f32::is_finite));
            let value = value.ok_or_else(|| BackendError::NotFinite(self.name.clone()))?;
            let board = &kept[row * self.bytes..][..self.bytes];
            found[place] = Some(Imagined {
                board: Arc::new(ImaginedBoard::new(board, has_step)),
                value,
                ended: ended[row],
                logits,
                likeliest,
            });
        }
        Ok(())
    }
}

impl Imagination for WorldImagination {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn context(&self) -> usize {
        self.context
    }

    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError> {
        let mut found = Vec::with_capacity(scenes.len());
        for scenes in scenes.chunks(BATCH) {
            found.extend(torch::caught(|| self.see(scenes, most))??);
        }
        Ok(found)
    }
}

/// Returns the rows, i64, of the true positions at these indices.
fn rows(places: &[usize], scenes: &[Scene]) -> Tensor {
    let words = places.iter().filter_map(|&place| match &scenes[place] {
        Scene::Present { input, .. } => Some(bytemuck::cast_slice::<u64, i64>(input.words())),
        Scene::After { .. } => None,
    });
    let words: Vec<i64> = words.flatten().copied().collect();
    Tensor::from_slice(&words).view([places.len() as i64, -1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{CodePolicy, Way};
    use crate::chess::Game;
    use crate::encode::Input;
    use crate::inference::Planned;
    use crate::network::chessformer::{ModelConfig, PositionConfig};
    use crate::network::world::{WorldConfig, WorldState};
    use crate::network::{About, Architecture, Playable};
    use crate::torch::ExportPrecision;

    /// Returns a small network with large random weights.
    fn network(state: WorldState) -> Network<WorldModel> {
        let mut encoder = ModelConfig::preset("cf-1m-gab").unwrap();
        (encoder.layers, encoder.width) = (1, 32);
        encoder.position = PositionConfig::Relative;
        let config = WorldConfig {
            encoder,
            state,
            blocks: 2,
            context: 3,
        };
        tch::manual_seed(4);
        let world = WorldModel::new(&config, Device::Cpu).unwrap();
        let flat = world.initial_weights();
        let flat = &flat + Tensor::randn_like(&flat) * 0.2;
        let about = About {
            correction: None,
            name: "little".to_owned(),
            search_value: "q".to_owned(),
            training: serde_json::Value::Null,
            licence: "CC0-1.0".to_owned(),
        };
        Network::new(Box::new(world), &flat, about)
    }

    #[test]
    fn boards_are_those_that_the_networks_steps_lead_to() {
        for state in [WorldState::Squares, WorldState::Token, WorldState::Dit] {
            let network = network(state);
            let (world, weights) = (&network.architecture, &network.weights);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("little.pt");
            network.write(ExportPrecision::F32, &path).unwrap();
            let file = std::fs::read(&path).unwrap();
            let numbers = [ComputeType::from(Kind::Float)];
            let planned =
                Planned::new(&file, CodePolicy::Checked, Device::Cpu, &numbers, Way::Auto);
            let opened = planned.unwrap().opened;
            let Some(Playable::World(opened)) = opened.network else {
                panic!("{opened:?}");
            };
            let imagination = WorldImagination::new(&opened, Device::Cpu, &numbers).unwrap();
            let input = Box::new(Input::encode(&Game::default()));
            let root = Scene::Present {
                input: input.clone(),
                moves: vec![7],
            };
            let root = imagination.imagine(&[root], 3).unwrap().remove(0);
            let words: &[i64] = bytemuck::cast_slice(input.words());
            let rows = Tensor::from_slice(words).unsqueeze(0);
            // The lines have different lengths, so the last batches contain only the longer line.
            let lines: [&[u16]; 2] = [&[10, 400, 1000, 1850], &[10, 77]];
            let mut boards = lines.map(|_| vec![Arc::clone(&root.board)]);
            let mut expected = lines.map(|_| {
                let latents = tch::no_grad(|| world.represent(weights, &rows));
                (latents, world.past())
            });
            let mut left = [0, 0];
            for _ in 0..4 {
                let going: Vec<usize> = (0..2)
                    .filter(|&line| left[line] < lines[line].len())
                    .collect();
                let scene = |&line: &usize| Scene::After {
                    from: Arc::clone(boards[line].last().unwrap()),
                    path: boards[line].iter().rev().take(3).cloned().collect(),
                    mv: lines[line][left[line]],
                };
                let scenes: Vec<Scene> = going.iter().map(scene).collect();
                let imagined = imagination.imagine(&scenes, 3).unwrap();
                for (line, imagined) in going.into_iter().zip(imagined) {
                    let mv = Tensor::from_slice(&[i64::from(lines[line][left[line]])]);
                    let (latents, past) = &mut expected[line];
                    *latents = tch::no_grad(|| world.step(weights, latents, &mv, past));
                    let numbers: Vec<f32> = bytemuck::pod_collect_to_vec(imagined.board.bytes());
                    let numbers = Tensor::from_slice(&numbers[..latents.numel()]);
                    let off = (numbers - latents.reshape([-1])).abs().max();
                    let off = off.double_value(&[]);
                    assert!(off < 1e-4, "{state:?} after {} moves: {off}", left[line]);
                    boards[line].push(imagined.board);
                    left[line] += 1;
                }
            }
            assert_eq!(left, [4, 2]);
        }
    }
}
