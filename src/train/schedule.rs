//! Computes the learning rate at each step.

use super::config::{ScheduleConfig, ScheduleShape};

impl ScheduleConfig {
    /// Returns the learning rate at step `step` (from 0) of `steps`.
    pub fn rate(&self, step: u64, steps: u64) -> f64 {
        let (at, all) = (step as f64, steps as f64);
        let share = match &self.shape {
            ScheduleShape::Stable { decay } => {
                let decay = (decay * all).max(1.0);
                ((all - at) / decay).min(1.0)
            }
            ScheduleShape::Cosine { last } => {
                let turn = std::f64::consts::PI * (at / all).min(1.0);
                last + (1.0 - last) * (1.0 + turn.cos()) / 2.0
            }
            ScheduleShape::Stepped { drops } => drops
                .iter()
                .filter(|(from, _)| *from <= step)
                .map(|&(_, share)| share)
                .next_back()
                .unwrap_or(1.0),
        };
        let warm = if step < self.warmup {
            (at + 1.0) / self.warmup as f64
        } else {
            1.0
        };
        self.peak * share.max(0.0) * warm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(shape: ScheduleShape, at: &[u64]) -> Vec<f64> {
        let schedule = ScheduleConfig {
            peak: 1.0,
            warmup: 10,
            shape,
        };
        let round = |rate: f64| (rate * 1000.0).round() / 1000.0;
        at.iter()
            .map(|&step| round(schedule.rate(step, 100)))
            .collect()
    }

    #[test]
    fn rates_follow_their_shapes() {
        let stable = ScheduleShape::Stable { decay: 0.2 };
        assert_eq!(
            rates(stable, &[0, 9, 50, 80, 90, 99]),
            [0.1, 1.0, 1.0, 1.0, 0.5, 0.05]
        );
        let cosine = ScheduleShape::Cosine { last: 0.1 };
        assert_eq!(rates(cosine, &[50, 100]), [0.55, 0.1]);
        let drops = vec![(40, 0.3), (80, 0.1)];
        let stepped = ScheduleShape::Stepped { drops };
        assert_eq!(rates(stepped, &[4, 39, 40, 99]), [0.5, 1.0, 0.3, 0.1]);
    }
}
