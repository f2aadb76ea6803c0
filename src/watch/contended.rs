//! Which settings another program writes again and again. They are left unchanged for a time: two programs that undo each
//! other's work are worse than either. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use nicpin::report::run::ChangedSetting;

/// So many restores in this time, without an event of the kernel in between, are a fight.
const RESTORES: usize = 3;
const WINDOW: Duration = Duration::from_secs(600);
/// The setting is left unchanged for this time; for twice as long the next time.
const LEFT_ALONE: Duration = Duration::from_secs(3600);
const DOUBLINGS: u32 = 8;
/// After so long without a fight, the next one is the first again.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// The settings that were restored lately, and those that are left unchanged, by their names in the record.
#[derive(Default)]
pub struct ContendedSettings {
    settings: BTreeMap<String, History>,
    /// How often a setting was found to be fought over.
    pub count: u64,
}

#[derive(Default)]
struct History {
    setting: ChangedSetting,
    /// What was written last.
    value: String,
    restored: Vec<Duration>,
    /// Until when it is left unchanged.
    until: Duration,
    /// How often it was left unchanged.
    times: u32,
}

impl ContendedSettings {
    /// An event of the kernel about an interface, or about all: what is restored after it was not another program's work.
    pub fn kernel_event(&mut self, interface: &str) {
        for history in self.settings.values_mut() {
            if interface.is_empty() || history.setting.interface == interface {
                history.restored.clear();
            }
        }
    }

    /// A setting was written. Some time if it is left unchanged from now on. It was restored only if the same value was
    /// written before: another one is a new plan, and nobody else needs to have written.
    pub fn written(
        &mut self,
        setting: &ChangedSetting,
        value: &str,
        now: Duration,
    ) -> Option<Duration> {
        let history = self.settings.entry(setting.name.clone());
        let history = history.or_insert_with(|| History {
            value: value.to_owned(),
            ..History::default()
        });
        history.setting.clone_from(setting);
        if history.value != value {
            value.clone_into(&mut history.value);
            history.restored.clear();
            return None;
        }
        (history.restored).retain(|&then| now.saturating_sub(then) < WINDOW);
        history.restored.push(now);
        if history.restored.len() < RESTORES {
            return None;
        }
        history.restored.clear();
        let lasts = LEFT_ALONE.saturating_mul(1 << history.times.min(DOUBLINGS));
        history.until = now + lasts;
        history.times += 1;
        self.count += 1;
        Some(lasts)
    }

    /// The settings to leave alone now, and until when.
    pub fn left_alone(&self, now: Duration) -> impl Iterator<Item = (&ChangedSetting, Duration)> {
        let histories = self.settings.values();
        let current = histories.filter(move |history| now < history.until);
        current.map(|history| (&history.setting, history.until))
    }

    /// Forgets the settings that are gone, so that devices that come and go need no memory.
    pub fn forget(&mut self, now: Duration) {
        self.settings.retain(|_, history| {
            let mut restored = history.restored.iter();
            let is_recent = restored.any(|&then| now.saturating_sub(then) < WINDOW);
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

    fn write(contended: &mut ContendedSettings, queue: u32, now: Duration) -> Option<Duration> {
        contended.written(&setting(queue), "02", now)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn three_restores_in_ten_minutes_are_a_fight_and_the_time_doubles() {
        let mut contended = ContendedSettings::default();
        let mut now = secs(5);
        for hours in [1, 2, 4, 8] {
            assert_eq!(write(&mut contended, 0, now), None);
            assert_eq!(write(&mut contended, 0, now + secs(2)), None);
            let lasts = write(&mut contended, 0, now + secs(599)).unwrap();
            now += secs(599);
            assert_eq!(lasts, secs(hours * 3600));
            let left: Vec<_> = contended
                .left_alone((now + lasts).saturating_sub(secs(1)))
                .collect();
            assert_eq!(left.len(), 1);
            now += lasts;
            assert_eq!(contended.left_alone(now).count(), 0);
            contended.forget(now);
        }
        assert_eq!(contended.count, 4);
        contended.forget(now + FORGOTTEN);
        assert!(contended.settings.is_empty());
    }

    #[test]
    fn an_event_of_the_kernel_is_no_fight() {
        let mut contended = ContendedSettings::default();
        for round in 0..20 {
            contended.kernel_event(if round % 2 == 0 { "eth2" } else { "" });
            assert_eq!(write(&mut contended, 0, secs(round)), None);
        }
        // Of another interface.
        for round in 20..22 {
            contended.kernel_event("eth3");
            assert_eq!(write(&mut contended, 0, secs(round)).is_some(), round == 21);
        }
    }

    /// Each change of an interface's channels gives another interface other CPUs, and nobody else writes.
    #[test]
    fn a_plan_that_changes_is_no_fight() {
        let mut contended = ContendedSettings::default();
        for (round, channels) in [3, 2, 3, 2, 3, 4].into_iter().enumerate() {
            contended.kernel_event("nic0");
            let now = secs(5 * round as u64);
            contended.forget(now);
            let value = format!("{channels:02x}");
            for queue in 0..6 {
                assert_eq!(contended.written(&setting(queue), &value, now), None);
            }
        }
        assert_eq!(contended.count, 0);
        // The same value again and again is one.
        assert_eq!(contended.written(&setting(0), "04", secs(31)), None);
        assert_eq!(contended.written(&setting(0), "04", secs(32)), None);
        assert!(contended.written(&setting(0), "04", secs(33)).is_some());
    }

    proptest! {
        /// Whoever writes as often as it likes: a queue is restored at most three times an hour, and others are not
        /// concerned.
        #[test]
        fn a_queue_is_restored_three_times_an_hour(gaps in proptest::collection::vec(0..900_u64, 1..200)) {
            let (mut contended, mut now, mut restored) = (ContendedSettings::default(), secs(0), Vec::new());
            for gap in gaps {
                now += secs(gap);
                contended.forget(now);
                let name = setting(0).name;
                if !contended.left_alone(now).any(|(left, _)| left.name == name) {
                    restored.push(now);
                    write(&mut contended, 0, now);
                }
            }
            for (at, first) in restored.iter().enumerate() {
                let within = restored[at..].iter().filter(|then| **then < *first + WINDOW).count();
                prop_assert!(within <= RESTORES, "{restored:?}");
            }
            let other = setting(1).name;
            prop_assert!(contended.left_alone(now).all(|(left, _)| left.name != other));
        }
    }
}
