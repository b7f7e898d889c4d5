//! The named outputs of networks that evaluate positions.

use tch::Tensor;

/// One output of a network. Values are in the view of the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Policy logits f32 [B, 1858]. Illegal moves are not masked.
    Policy,
    /// Logits of win, draw and loss, f32 [B, 3].
    Wdl,
    /// Plies to the end of the game, f32 `[B]`.
    MovesLeft,
    /// The search's value, in −1…1, f32 `[B]`.
    Q,
    /// The expected squared error of [`Output::Q`], f32 `[B]`.
    QError,
    /// The value a few moves later, in −1…1, f32 `[B]`.
    ShortTerm,
    /// The expected squared error of [`Output::ShortTerm`], f32 `[B]`.
    ShortTermError,
    /// Logits of the softened policy, f32 [B, 1858], used only in training.
    PolicySoft,
    /// Logits for the bucket that contains [`Output::Q`], f32 [B, buckets], used only in training.
    QCategorical,
    /// Logits for the bucket that contains [`Output::ShortTerm`], f32 [B, buckets], used only in
    /// training.
    ShortTermCategorical,
}

impl Output {
    /// All outputs.
    pub const ALL: [Output; 10] = [
        Output::Policy,
        Output::Wdl,
        Output::MovesLeft,
        Output::Q,
        Output::QError,
        Output::ShortTerm,
        Output::ShortTermError,
        Output::PolicySoft,
        Output::QCategorical,
        Output::ShortTermCategorical,
    ];

    /// Returns the output's name in the metadata of network files.
    pub fn name(self) -> &'static str {
        match self {
            Output::Policy => "policy",
            Output::Wdl => "wdl",
            Output::MovesLeft => "moves_left",
            Output::Q => "q",
            Output::QError => "q_error",
            Output::ShortTerm => "st",
            Output::ShortTermError => "st_error",
            Output::PolicySoft => "policy_soft",
            Output::QCategorical => "q_categorical",
            Output::ShortTermCategorical => "st_categorical",
        }
    }

    /// Returns the output with this name, if any.
    pub fn from_name(name: &str) -> Option<Output> {
        Output::ALL.into_iter().find(|output| output.name() == name)
    }
}

/// A set of outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSet(u16);

impl OutputSet {
    /// Returns the set of all outputs.
    #[cfg(test)]
    pub fn all() -> OutputSet {
        Output::ALL.into_iter().collect()
    }

    /// Returns whether the set contains the output.
    pub fn contains(self, output: Output) -> bool {
        self.0 & 1 << output as u16 != 0
    }

    /// Returns the set without this output.
    #[must_use]
    pub fn without(self, output: Output) -> OutputSet {
        OutputSet(self.0 & !(1 << output as u16))
    }
}

impl FromIterator<Output> for OutputSet {
    fn from_iter<T: IntoIterator<Item = Output>>(outputs: T) -> OutputSet {
        let bits = outputs.into_iter().map(|output| 1 << output as u16);
        OutputSet(bits.fold(0, |set, bit| set | bit))
    }
}

/// The outputs of one evaluation.
#[derive(Debug, Default)]
pub struct Outputs([Option<Tensor>; Output::ALL.len()]);

impl Outputs {
    /// Returns an output, or `None` if the network does not have it or it was not requested.
    pub fn get(&self, output: Output) -> Option<&Tensor> {
        self.0[output as usize].as_ref()
    }

    /// Removes and returns an output.
    pub fn take(&mut self, output: Output) -> Option<Tensor> {
        self.0[output as usize].take()
    }

    /// Adds an output.
    pub fn set(&mut self, output: Output, tensor: Tensor) {
        self.0[output as usize] = Some(tensor);
    }

    /// Returns the policy logits, which every network has.
    ///
    /// # Panics
    /// Panics if the policy was not requested.
    pub fn policy(&self) -> &Tensor {
        self.get(Output::Policy)
            .expect("every network has a policy")
    }

    /// Returns the logits of win, draw and loss, which every network has.
    ///
    /// # Panics
    /// Panics if win, draw and loss were not requested.
    pub fn wdl(&self) -> &Tensor {
        self.get(Output::Wdl).expect("every network has a result")
    }
}

impl FromIterator<(Output, Tensor)> for Outputs {
    fn from_iter<T: IntoIterator<Item = (Output, Tensor)>>(tensors: T) -> Outputs {
        let mut outputs = Outputs::default();
        for (output, tensor) in tensors {
            outputs.set(output, tensor);
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_found_by_their_names_and_places() {
        for (place, output) in Output::ALL.into_iter().enumerate() {
            assert_eq!(output as usize, place);
            assert_eq!(Output::from_name(output.name()), Some(output));
        }
        assert_eq!(Output::from_name("value"), None);
        let set: OutputSet = [Output::Wdl, Output::PolicySoft].into_iter().collect();
        assert!(set.contains(Output::Wdl) && !set.contains(Output::Policy));
        assert!(!set.without(Output::Wdl).contains(Output::Wdl));
        assert!(
            Output::ALL
                .iter()
                .all(|&output| OutputSet::all().contains(output))
        );
    }
}
