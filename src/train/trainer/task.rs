//! Selects the objective for a task.

/// Evaluates an expression in which a type parameter stands for a task's objective.
macro_rules! with_objective {
    ($task:expr, $objective:ident => $body:expr) => {
        with_objective!(
            $task,
            $objective => $body,
            Positions: PositionObjective,
            Games: GameObjective,
            Horizon: HorizonObjective,
            Unroll: UnrollObjective
        )
    };
    ($task:expr, $objective:ident => $body:expr, $($name:ident: $type:ident),*) => {
        match $task {
            $($crate::train::config::Task::$name => {
                type $objective = $crate::train::objective::$type;
                $body
            })*
        }
    };
}

pub(super) use with_objective;

#[cfg(test)]
mod tests {
    use crate::network::ArchitectureConfig;
    use crate::network::chessformer::ModelConfig;
    use crate::network::maia3::Maia3Config;
    use crate::train::config::TrainConfig;
    use crate::train::trainer::Trainer;
    use tch::Device;

    /// The families that can be trained are exactly those that the family table marks as trainable.
    #[test]
    fn families_are_trained_as_their_table_says() {
        let table = include_str!("../../network.rs");
        let chessformer = ArchitectureConfig::Chessformer {
            model: ModelConfig::preset("cf-1m-gab").unwrap(),
        };
        let maia3 = ArchitectureConfig::Maia3 {
            model: Maia3Config::preset("maia3-3m").unwrap(),
        };
        let gpt = toml::from_str(
            "family = \"gpt\"\n[model]\nlayers = 1\nwidth = 8\nheads = 1\nfeed_forward = 8",
        )
        .unwrap();
        for (family, architecture) in [("Chessformer", chessformer), ("Maia3", maia3), ("Gpt", gpt)]
        {
            let config = "name = \"x\"\nsteps = 1\nbatch = 1\npreset = \"cf-1m-gab\"\n[data]";
            let config: TrainConfig = toml::from_str(config).unwrap();
            let trainer = Trainer::new(&config.with_architecture(architecture), Device::Cpu);
            let row = table
                .lines()
                .find(|line| line.contains(&format!("| [`{family}`] |")));
            let trained = row.unwrap().rsplit('|').nth(1).unwrap().trim();
            assert_eq!(trainer.is_err(), trained.starts_with("no"), "{family}");
        }
    }
}
