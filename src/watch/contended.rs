//! Settings that another program writes again and again are restored less and less often, until an event about their
//! interface: two programs that undo each other's work all the time are worse than either. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use nicpin::kinds::SettingId;
use nicpin::report::watcher::LeftAlone;

use crate::watch::report::RestoredSetting;

/// Restores that are done at once. The next one waits, and each after it twice as long, up to [`LONGEST_WAIT`].
pub const AT_ONCE: u32 = 3;
pub const FIRST_WAIT: Duration = Duration::from_secs(60);
const DOUBLINGS: u32 = 6;
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// One restore of a setting is forgotten for each such time without an undo.
const HELD: Duration = Duration::from_secs(600);
/// A started irqbalance may move IRQs for so long before it answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
const SAID: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub struct ContendedSettings {
    settings: BTreeMap<SettingId, History>,
    pub count: u64,
    /// Process of the irqbalance that last promised to leave the planned IRQs unchanged.
    irqbalance: Option<i32>,
    may_answer_until: Duration,
    silent: Option<Duration>,
}

struct History {
    restored: RestoredSetting,
    /// Without an event between them, less the forgotten ones.
    restores: u32,
    /// End of the time in which it is left unchanged, or the last restore.
    until: Duration,
    said: Option<Duration>,
}

impl ContendedSettings {
    /// After an event about an interface, or (empty) about all: the next restore answers no other program.
    pub fn begin_anew(&mut self, interface: &str) {
        for history in self.settings.values_mut() {
            if interface.is_empty() || history.restored.setting.interface == interface {
                history.begin_anew();
            }
        }
    }

    /// All that a started irqbalance moves before it answers counts as one restore at most.
    pub fn irqbalance_started(&mut self, now: Duration) {
        self.may_answer_until = now + ANSWERS_WITHIN;
    }

    /// No restore counts while an irqbalance that was asked is silent: it scans the machine, moves IRQs of which it has
    /// not heard, and takes the bans later. One that is silent again and again is a program like any other.
    pub fn irqbalance_silent(&mut self, now: Duration) {
        if self.silent.is_none_or(|then| now >= then + HELD) {
            self.silent = Some(now);
            self.may_answer_until = now + ANSWERS_WITHIN;
        }
    }

    /// An irqbalance leaves the planned IRQs unchanged from now on; `true` if settings that were left unchanged are to
    /// be restored.
    pub fn irqbalance_answered(&mut self, process: i32, now: Duration) -> bool {
        self.may_answer_until = Duration::ZERO;
        let is_another = self.irqbalance.replace(process) != Some(process);
        let had_left = is_another && self.unrestored_settings(now).next().is_some();
        if is_another {
            self.begin_anew("");
        }
        had_left
    }

    /// Returns for how long the setting is left unchanged, if that has to be reported. Another value or file than
    /// before does not count: it is a new plan or a new IRQ, which nobody has undone.
    pub fn written(&mut self, written: &RestoredSetting, now: Duration) -> Option<Duration> {
        let name = written.setting.name.clone();
        let history = self.settings.entry(name).or_insert_with(|| History {
            restored: written.clone(),
            restores: 0,
            until: Duration::ZERO,
            said: None,
        });
        let is_restore = history.restored.is_same(written);
        history.restored.clone_from(written);
        if !is_restore {
            history.begin_anew();
        }
        if !is_restore || now < self.may_answer_until {
            return None;
        }
        history.restores = history.remembered_restores(now).min(AT_ONCE + DOUBLINGS) + 1;
        let doublings = history.restores.checked_sub(AT_ONCE);
        let wait = doublings.map_or(Duration::ZERO, |times| {
            LONGEST_WAIT.min(FIRST_WAIT * (1 << times))
        });
        history.until = now + wait;
        if wait.is_zero() {
            return None;
        }
        self.count += 1;
        let is_said = history.said.is_some_and(|then| now < then + SAID);
        if is_said {
            return None;
        }
        history.said = Some(now);
        Some(wait)
    }

    pub fn unrestored_settings(
        &self,
        now: Duration,
    ) -> impl Iterator<Item = (&RestoredSetting, Duration)> {
        let histories = self.settings.values();
        let current = histories.filter(move |history| now < history.until);
        current.map(|history| (&history.restored, history.until))
    }

    /// Settings left unchanged, for people. `wall`: now, in seconds since 1970.
    pub fn for_status(&self, now: Duration, wall: u64) -> Vec<LeftAlone> {
        self.unrestored_settings(now)
            .map(|(left, until)| LeftAlone {
                setting: left.setting.clone(),
                until: wall + until.saturating_sub(now).as_secs(),
                writers: left.writers.clone(),
            })
            .collect()
    }

    pub fn forget(&mut self, now: Duration) {
        self.settings.retain(|_, history| {
            let is_said = history.said.is_some_and(|then| now < then + SAID);
            is_said || history.remembered_restores(now) > 0
        });
    }
}

impl History {
    fn begin_anew(&mut self) {
        (self.restores, self.until) = (0, Duration::ZERO);
    }

    fn remembered_restores(&self, now: Duration) -> u32 {
        let held = now.saturating_sub(self.until).as_secs() / HELD.as_secs();
        let forgotten = u32::try_from(held).unwrap_or(u32::MAX);
        self.restores.saturating_sub(forgotten)
    }
}

#[cfg(test)]
mod tests {
    use nicpin::report::watcher::ChangedSetting;
    use proptest::prelude::*;

    use super::*;

    fn of_queue(queue: u32) -> RestoredSetting {
        RestoredSetting {
            setting: ChangedSetting {
                name: format!("0000:82:00.0 port 0 vector combined {queue}").into(),
                interface: "eth2".to_owned(),
                path: format!("/proc/irq/{}/smp_affinity", 70 + queue),
            },
            value: "02".to_owned(),
            writers: Vec::new(),
        }
    }

    fn write(contended: &mut ContendedSettings, queue: u32, now: Duration) -> bool {
        contended.written(&of_queue(queue), now);
        contended
            .unrestored_settings(now)
            .any(|(left, _)| *left == of_queue(queue))
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn waits(contended: &ContendedSettings, now: Duration) -> Option<Duration> {
        contended
            .unrestored_settings(now)
            .next()
            .map(|(_, until)| until.saturating_sub(now))
    }

    #[test]
    fn three_restores_are_done_at_once_and_then_the_time_doubles_up_to_an_hour() {
        let mut contended = ContendedSettings::default();
        let mut now = secs(5);
        assert!(!write(&mut contended, 0, now) && !write(&mut contended, 0, now + secs(2)));
        now += secs(4);
        assert_eq!(contended.written(&of_queue(0), now), Some(secs(60)));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let wait = secs(60 * minutes);
            assert_eq!(waits(&contended, now), Some(wait));
            assert_eq!(contended.unrestored_settings(now + wait).count(), 0);
            now += wait;
            contended.forget(now);
            assert_eq!(contended.written(&of_queue(0), now), None);
        }
        assert_eq!(contended.count, 10);
        assert!(write(&mut contended, 0, now + LONGEST_WAIT + 6 * HELD));
        now += 2 * SAID;
        contended.forget(now);
        assert!(contended.settings.is_empty());
    }

    #[test]
    fn what_is_written_after_an_event_is_no_answer_to_anybody() {
        let mut contended = ContendedSettings::default();
        let four = |contended: &mut ContendedSettings, begin: &dyn Fn(&mut ContendedSettings)| {
            for round in 0..4 {
                begin(contended);
                assert_eq!(write(contended, 0, secs(round)), round >= 2);
            }
            assert_eq!(waits(contended, secs(4)), Some(secs(119)));
            begin(contended);
        };
        four(&mut contended, &|_| {});
        for interface in ["eth2", ""] {
            contended.begin_anew(interface);
            assert_eq!(waits(&contended, secs(4)), None);
            four(&mut contended, &|contended| contended.begin_anew("eth3"));
        }
        assert!(contended.irqbalance_answered(812, secs(4)));
        assert_eq!(waits(&contended, secs(4)), None);
        four(&mut contended, &|contended| {
            contended.irqbalance_answered(812, secs(4));
        });
    }

    #[test]
    fn a_silent_irqbalance_is_waited_for_once_in_ten_minutes() {
        let mut contended = ContendedSettings::default();
        let mut left = |begin: u64, silent: &[u64]| {
            contended.begin_anew("");
            let second = |second: u64| {
                let now = secs(begin + second);
                if silent.contains(&second) {
                    contended.irqbalance_silent(now);
                } else {
                    contended.irqbalance_answered(812, now);
                }
                write(&mut contended, 0, now)
            };
            (0..5).map(second).collect::<Vec<_>>()
        };
        let counted = [false, false, true, true, true];
        assert_eq!(left(0, &[0, 1, 2]), [false; 5]);
        assert_eq!(left(20, &[]), counted);
        assert_eq!(left(40, &[0, 1, 2, 3, 4]), counted);
        assert_eq!(left(600, &[0, 1, 2, 3, 4]), [false; 5]);
    }

    #[test]
    fn another_value_file_or_name_is_no_restore() {
        let mut contended = ContendedSettings::default();
        let mut written = of_queue(0);
        for round in 0..12_u32 {
            match round % 3 {
                0 => written.value = format!("{round:02x}"),
                1 => written.setting.path = format!("/proc/irq/{round}/smp_affinity"),
                _ => written.setting.interface = format!("eth{round}"),
            }
            contended.written(&written, secs(round.into()));
            contended.forget(secs(round.into()));
        }
        assert_eq!(
            (
                contended.count,
                contended.unrestored_settings(secs(0)).count()
            ),
            (0, 0)
        );
    }

    #[test]
    fn what_irqbalance_moves_before_it_answers_is_one_restore() {
        let mut contended = ContendedSettings::default();
        for restart in 0..20 {
            let now = secs(5 * restart);
            contended.irqbalance_started(now);
            assert!((0..8).all(|_| !write(&mut contended, 0, now + secs(1))));
            let process = 1000 + i32::try_from(restart).unwrap();
            assert!(!contended.irqbalance_answered(process, now + secs(1)));
            assert!(!write(&mut contended, 0, now + secs(2)));
        }
        // An irqbalance that never answers is like any other program after a while.
        contended.irqbalance_started(secs(200));
        let restored = (0..1800).filter(|second| {
            let now = secs(200 + second);
            waits(&contended, now).is_none() && {
                write(&mut contended, 0, now);
                *second >= 30
            }
        });
        assert!(restored.count() <= 8);
    }

    proptest! {
        /// A queue is restored within an hour of the first look at it.
        #[test]
        fn a_queue_is_restored_a_dozen_times_an_hour(
            gaps in prop_oneof![
                proptest::collection::vec(0..3_u64, 3600..7200),
                proptest::collection::vec(0..1000_u64, 1..200),
                proptest::collection::vec(prop_oneof![Just(0), Just(600), Just(660)], 1..200),
            ],
        ) {
            let (mut contended, mut now, mut restored) = (ContendedSettings::default(), secs(0), Vec::new());
            let mut wrong_since = None;
            for gap in gaps {
                now += secs(gap);
                contended.forget(now);
                let since = *wrong_since.get_or_insert(now);
                if waits(&contended, now).is_none() {
                    restored.push(now);
                    write(&mut contended, 0, now);
                    wrong_since = None;
                } else {
                    prop_assert!(now < since + LONGEST_WAIT);
                }
            }
            for (at, first) in restored.iter().enumerate() {
                let within = restored[at..].iter().filter(|then| **then < *first + secs(3600)).count();
                prop_assert!(within <= 12, "{restored:?}");
            }
            prop_assert!(contended.settings.len() <= 1);
        }

        #[test]
        fn one_that_writes_rarely_is_answered_at_once(gaps in proptest::collection::vec(600..4000_u64, 1..200)) {
            let (mut contended, mut now) = (ContendedSettings::default(), secs(0));
            for gap in gaps {
                now += secs(gap);
                prop_assert!(!write(&mut contended, 0, now));
            }
        }
    }
}
