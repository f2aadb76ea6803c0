//! Which settings another program writes again and again. They are left alone for a time: two programs that undo each
//! other's work are worse than either. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use nicpin::report::run::ChangedSetting;

/// So many restores in this time, without an event of the kernel in between, are a fight.
const RESTORES: usize = 3;
const WINDOW: Duration = Duration::from_secs(600);
/// The setting is left alone for this time; for twice as long the next time.
const LEFT_ALONE: Duration = Duration::from_secs(3600);
const DOUBLINGS: u32 = 8;
/// After so long without a fight, the next one is the first again.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// The settings that were restored lately, and those that are left alone, by their names in the record.
#[derive(Debug, Clone, Default)]
pub struct Fights {
    settings: BTreeMap<String, History>,
    /// How often a setting was found to be fought over.
    pub count: u64,
}

#[derive(Debug, Clone)]
struct History {
    interface: String,
    path: String,
    restored: Vec<Duration>,
    /// Until when it is left alone.
    until: Duration,
    /// How often it was left alone.
    times: u32,
}

/// A setting that is left alone from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fight {
    pub setting: ChangedSetting,
    pub lasts: Duration,
}

impl Fights {
    /// An event of the kernel about an interface, or about all: what is restored after it was not another program's work.
    pub fn kernel_event(&mut self, interface: &str) {
        for history in self.settings.values_mut() {
            if interface.is_empty() || history.interface == interface {
                history.restored.clear();
            }
        }
    }

    /// A setting was restored. Some if it is left alone from now on.
    pub fn restored(&mut self, setting: &ChangedSetting, now: Duration) -> Option<Fight> {
        let new = || History {
            interface: String::new(),
            path: String::new(),
            restored: Vec::new(),
            until: Duration::ZERO,
            times: 0,
        };
        let history = self
            .settings
            .entry(setting.name.clone())
            .or_insert_with(new);
        history.interface.clone_from(&setting.interface);
        history.path.clone_from(&setting.path);
        history
            .restored
            .retain(|&then| now.saturating_sub(then) < WINDOW);
        history.restored.push(now);
        if history.restored.len() < RESTORES {
            return None;
        }
        history.restored.clear();
        let lasts = LEFT_ALONE.saturating_mul(1 << history.times.min(DOUBLINGS));
        history.until = now + lasts;
        history.times += 1;
        self.count += 1;
        Some(Fight {
            setting: setting.clone(),
            lasts,
        })
    }

    /// The settings to leave alone now, and until when.
    pub fn left_alone(&self, now: Duration) -> impl Iterator<Item = (ChangedSetting, Duration)> {
        let current = self
            .settings
            .iter()
            .filter(move |(_, history)| now < history.until);
        current.map(
            |(
                name,
                History {
                    interface,
                    path,
                    until,
                    ..
                },
            )| {
                let (name, interface, path) = (name.clone(), interface.clone(), path.clone());
                (
                    ChangedSetting {
                        name,
                        interface,
                        path,
                    },
                    *until,
                )
            },
        )
    }

    /// Forgets what is long over, so that devices that come and go need no memory.
    pub fn forget(&mut self, now: Duration) {
        self.settings.retain(|_, history| {
            let is_recent = history
                .restored
                .iter()
                .any(|&then| now.saturating_sub(then) < WINDOW);
            is_recent || history.times > 0 && now < history.until + FORGOTTEN
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn setting(queue: u32) -> ChangedSetting {
        ChangedSetting {
            name: format!("0000:82:00.0 port 0 vector combined {queue}"),
            interface: "eth2".to_owned(),
            path: format!("/proc/irq/{}/smp_affinity", 70 + queue),
        }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn three_restores_in_ten_minutes_are_a_fight_and_the_time_doubles() {
        let mut fights = Fights::default();
        let mut now = secs(5);
        for hours in [1, 2, 4, 8] {
            assert_eq!(fights.restored(&setting(0), now), None);
            assert_eq!(fights.restored(&setting(0), now + secs(2)), None);
            let fight = fights.restored(&setting(0), now + secs(599)).unwrap();
            now += secs(599);
            assert_eq!(fight.lasts, secs(hours * 3600));
            let left: Vec<_> = fights
                .left_alone((now + fight.lasts).saturating_sub(secs(1)))
                .collect();
            assert_eq!(left.len(), 1);
            now += fight.lasts;
            assert_eq!(fights.left_alone(now).count(), 0);
            fights.forget(now);
        }
        assert_eq!(fights.count, 4);
        fights.forget(now + FORGOTTEN);
        assert!(fights.settings.is_empty());
    }

    #[test]
    fn an_event_of_the_kernel_is_no_fight() {
        let mut fights = Fights::default();
        for round in 0..20 {
            fights.kernel_event(if round % 2 == 0 { "eth2" } else { "" });
            assert_eq!(fights.restored(&setting(0), secs(round)), None);
        }
        // Of another interface.
        for round in 20..22 {
            fights.kernel_event("eth3");
            assert_eq!(
                fights.restored(&setting(0), secs(round)).is_some(),
                round == 21
            );
        }
    }

    proptest! {
        /// Whoever writes as often as it likes: a queue is restored at most three times an hour, and others are not
        /// concerned.
        #[test]
        fn a_queue_is_restored_three_times_an_hour(gaps in proptest::collection::vec(0..900_u64, 1..200)) {
            let (mut fights, mut now, mut restored) = (Fights::default(), secs(0), Vec::new());
            for gap in gaps {
                now += secs(gap);
                fights.forget(now);
                let name = setting(0).name;
                if !fights.left_alone(now).any(|(left, _)| left.name == name) {
                    restored.push(now);
                    fights.restored(&setting(0), now);
                }
            }
            for (at, first) in restored.iter().enumerate() {
                let within = restored[at..].iter().filter(|then| **then < *first + WINDOW).count();
                prop_assert!(within <= RESTORES, "{restored:?}");
            }
            let other = setting(1).name;
            prop_assert!(fights.left_alone(now).all(|(left, _)| left.name != other));
        }
    }
}
