//! Runs players on many positions concurrently.
//!
//! Everything that is measured, such as a puzzle or an entry of a test suite, is a [`Task`].
//! Workers take tasks from a shared queue; a worker whose player evaluates positions in batches
//! keeps enough tasks in progress to fill its batches.

use crate::chess::Game;
use crate::play::{Agent, AgentError, Choice, Limits, Question};
use crate::scoped_threads::side_by_side;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A task that takes one or more moves to solve.
pub trait Task: Send {
    /// Returns the position that is to be answered now.
    fn game(&self) -> &Game;

    /// Returns the same game mutably, so that its players' ratings can be set.
    fn game_mut(&mut self) -> &mut Game;

    /// Adjusts the search limits to the task.
    fn adjust(&self, limits: &mut Limits) {
        let _ = limits;
    }

    /// Processes the answer; returns whether another position follows.
    fn answer(&mut self, choice: &Choice) -> bool;
}

/// A player that solves tasks.
pub struct Player {
    /// The agent, which is either cleared between tasks or has no memory.
    pub agent: Box<dyn Agent>,
    /// The limit for each position.
    pub limits: Limits,
}

impl Player {
    fn answers<T: Task>(&mut self, tasks: &[(usize, T)]) -> Result<Vec<Choice>, AgentError> {
        let limits_of = |task: &T| {
            let mut limits = self.limits.clone();
            task.adjust(&mut limits);
            limits
        };
        let questions: Vec<Question<'_>> = tasks
            .iter()
            .map(|(_, task)| Question {
                game: task.game(),
                limits: limits_of(task),
            })
            .collect();
        self.agent.choose_many(&questions)
    }
}

/// Runs `tasks` on `players`, each on its own thread, and returns the answered tasks in order.
/// `done` receives every finished task.
///
/// # Errors
/// The first [`AgentError`]; the other players then stop at their next move.
///
/// # Panics
/// If `players` is empty.
pub fn run<T: Task>(
    tasks: Vec<T>,
    players: Vec<Player>,
    done: &(dyn Fn(&T) + Sync),
) -> Result<Vec<T>, AgentError> {
    assert!(!players.is_empty(), "tasks need a player");
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let answered = Mutex::new(Vec::new());
    let failed = AtomicBool::new(false);
    let work = |mut player: Player| -> Result<(), AgentError> {
        let mut open: Vec<(usize, T)> = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            while open.len() < player.agent.batch().max(1) {
                let Some(task) = queue.lock().next() else {
                    break;
                };
                player.agent.new_game();
                open.push(task);
            }
            if open.is_empty() {
                break;
            }
            let choices = player
                .answers(&open)
                .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            assert_eq!(choices.len(), open.len(), "an answer for each position");
            for ((index, mut task), choice) in std::mem::take(&mut open).into_iter().zip(choices) {
                if task.answer(&choice) {
                    open.push((index, task));
                } else {
                    done(&task);
                    answered.lock().push((index, task));
                }
            }
        }
        Ok(())
    };
    let work = &work;
    side_by_side(players.into_iter().map(|player| move || work(player)))?;
    let mut answered = answered.into_inner();
    answered.sort_unstable_by_key(|&(index, _)| index);
    Ok(answered.into_iter().map(|(_, task)| task).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::{Control, Report};
    use std::sync::atomic::AtomicUsize;

    /// A task that requires `left` answers.
    struct Countdown {
        game: Game,
        left: usize,
    }

    impl Task for Countdown {
        fn game(&self) -> &Game {
            &self.game
        }

        fn game_mut(&mut self) -> &mut Game {
            &mut self.game
        }

        fn answer(&mut self, choice: &Choice) -> bool {
            self.game.play(choice.best.unwrap());
            self.left -= 1;
            self.left > 0
        }
    }

    fn tasks(count: usize) -> Vec<Countdown> {
        (0..count)
            .map(|index| Countdown {
                game: Game::default(),
                left: 1 + index % 5,
            })
            .collect()
    }

    /// Plays the first move, in batches of `width`, and passes the batch sizes to `seen`.
    struct First<F> {
        width: usize,
        seen: F,
    }

    impl<F: FnMut(usize) + Send> Agent for First<F> {
        fn new_game(&mut self) {}

        fn choose(
            &mut self,
            _: &Game,
            _: &Limits,
            _: &Control,
            _: &mut dyn FnMut(&Report),
        ) -> Result<Choice, AgentError> {
            unreachable!("it is asked in batches")
        }

        fn choose_many(&mut self, questions: &[Question<'_>]) -> Result<Vec<Choice>, AgentError> {
            (self.seen)(questions.len());
            let choice = |question: &Question| Choice {
                best: question.moves().first().copied(),
                ..Choice::default()
            };
            Ok(questions.iter().map(choice).collect())
        }

        fn batch(&self) -> usize {
            self.width
        }
    }

    fn player(agent: impl Agent + 'static) -> Player {
        Player {
            agent: Box::new(agent),
            limits: Limits::default(),
        }
    }

    fn batched(width: usize, seen: impl FnMut(usize) + Send + 'static) -> Player {
        player(First { width, seen })
    }

    #[test]
    fn every_task_is_answered_to_its_end_and_order_is_kept() {
        let ended = AtomicUsize::new(0);
        let players = vec![batched(3, |_| {}), batched(1, |_| {})];
        let count = |_: &Countdown| {
            ended.fetch_add(1, Ordering::Relaxed);
        };
        let answered = run(tasks(40), players, &count).unwrap();
        assert_eq!(ended.into_inner(), 40);
        for (index, task) in answered.iter().enumerate() {
            assert_eq!(task.left, 0);
            assert_eq!(task.game.plies().len(), 2 + index % 5);
        }
    }

    #[test]
    fn batches_stay_full_while_there_are_tasks() {
        let widths = std::sync::Arc::new(Mutex::new(Vec::new()));
        let seen = widths.clone();
        let player = batched(8, move |width| seen.lock().push(width));
        run(tasks(40), vec![player], &|_| {}).unwrap();
        let widths = widths.lock();
        let full = widths.iter().take_while(|&&width| width == 8).count();
        // There are 120 answers; only the last tasks leave batches partly empty.
        assert!(full >= 120 / 8 - 5, "{widths:?}");
    }

    struct Failing;

    impl Agent for Failing {
        fn new_game(&mut self) {}

        fn choose(
            &mut self,
            _: &Game,
            _: &Limits,
            _: &Control,
            _: &mut dyn FnMut(&Report),
        ) -> Result<Choice, AgentError> {
            Err(crate::backend::BackendError::Stopped.into())
        }
    }

    #[test]
    fn a_failure_ends_the_run() {
        let waiting = || std::thread::sleep(std::time::Duration::from_millis(1));
        let players = vec![batched(1, move |_| waiting()), player(Failing)];
        assert!(run(tasks(1000), players, &|_| {}).is_err());
    }
}
