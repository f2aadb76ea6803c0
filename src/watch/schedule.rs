//! When to run: quiet after the last event, a limited number of runs, a periodic check, and another try after a failure.
//! Pure: the time is passed in, as the duration since any fixed moment.

use std::time::Duration;

/// A run waits until this long after the last event, and at most so long after the first one.
const QUIET: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// A token bucket: six runs at once, and six a minute. A run takes as much as comes back in ten seconds.
const RUN: Duration = Duration::from_secs(10);
const FULL: Duration = Duration::from_secs(60);
/// Pauses between runs when that is used up. They double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(8);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// A run without an event, for what nobody announces.
pub(super) const PERIOD: Duration = Duration::from_secs(300);
/// Before another try after a failure; doubles up to [`PERIOD`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// When the next run starts.
#[derive(Debug, Clone)]
pub struct Schedule {
    events: Option<Waiting>,
    /// Whether to run without waiting for anything.
    at_once: bool,
    /// What is left in the bucket, and the time up to which it was filled.
    left: Duration,
    filled: Duration,
    /// No run for events that may come in storms before this.
    not_before: Duration,
    /// The next pause.
    pause: Duration,
    check_at: Duration,
    retry_at: Option<Duration>,
    retry: Duration,
}

/// The events since the last run started.
#[derive(Debug, Clone)]
struct Waiting {
    first: Duration,
    last: Duration,
    /// Whether all of them may come in storms: a run for them takes from the bucket.
    is_limited: bool,
}

impl Waiting {
    fn quiet(&self) -> Duration {
        (self.last + QUIET).min(self.first + LONGEST)
    }
}

/// Why a run is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    Events,
    Periodic,
    Retry,
}

impl Schedule {
    pub fn new(now: Duration) -> Self {
        Self {
            events: None,
            at_once: false,
            left: FULL,
            filled: now,
            not_before: now,
            pause: FIRST_PAUSE,
            check_at: now + PERIOD,
            retry_at: None,
            retry: FIRST_RETRY,
        }
    }

    /// An event. One that does not come in storms waits for quiet only (`is_limited` is false), and others with it.
    pub fn event(&mut self, now: Duration, is_limited: bool) {
        let events = self.events.get_or_insert(Waiting {
            first: now,
            last: now,
            is_limited,
        });
        events.last = now;
        events.is_limited &= is_limited;
    }

    /// Somebody asked for a run: it waits neither for quiet nor for a pause.
    pub fn at_once(&mut self, now: Duration) {
        self.event(now, false);
        self.at_once = true;
    }

    /// The time of the periodic check.
    pub fn next_check(&self) -> Duration {
        self.check_at
    }

    /// When the next run is due.
    pub fn due(&self) -> Duration {
        if self.at_once {
            return Duration::ZERO;
        }
        let allowed = |events: &Waiting| {
            if events.is_limited {
                events.quiet().max(self.not_before)
            } else {
                events.quiet()
            }
        };
        let events = self.events.as_ref().map(allowed);
        [events, self.retry_at]
            .into_iter()
            .flatten()
            .fold(self.check_at, Duration::min)
    }

    /// Begins a run if one is due.
    pub fn begin(&mut self, now: Duration) -> Option<Demand> {
        if now < self.due() {
            return None;
        }
        let demand = match &self.events {
            Some(_) => Demand::Events,
            None if self.retry_at.is_some_and(|at| at <= now) => Demand::Retry,
            None => Demand::Periodic,
        };
        if let Some(events) = self
            .events
            .take()
            .filter(|events| events.is_limited && now >= self.not_before)
        {
            self.spend(events.quiet(), now);
        }
        (self.at_once, self.retry_at) = (false, None);
        self.check_at = now + PERIOD;
        Some(demand)
    }

    /// Takes a run from the bucket. When less than one is left, a pause follows.
    fn spend(&mut self, wanted: Duration, now: Duration) {
        if wanted < self.not_before {
            // It was put off: what came back during the pause is this run.
            self.left = Duration::ZERO;
        } else {
            self.left = FULL.min(self.left + now.saturating_sub(self.filled));
            if self.left == FULL {
                self.pause = FIRST_PAUSE;
            }
            self.left = self.left.saturating_sub(RUN);
        }
        self.filled = now;
        if self.left < RUN {
            self.not_before = now + self.pause;
            self.pause = LAST_PAUSE.min(2 * self.pause);
        }
    }

    /// Ends a run: after one that failed, another follows.
    pub fn end(&mut self, now: Duration, failed: bool) {
        if failed {
            self.retry_at = Some(now + self.retry);
            self.retry = PERIOD.min(2 * self.retry);
        } else {
            self.retry = FIRST_RETRY;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// The times of the runs that these events lead to, up to `end`, each of which lasts `length`.
    fn runs(events: &[u64], length: u64, end: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(ms(0));
        let (mut runs, mut events) = (Vec::new(), events.iter().copied().peekable());
        let mut free_at = 0;
        loop {
            let due = u64::try_from(schedule.due().as_millis())
                .unwrap()
                .max(free_at);
            match events.next_if(|&event| event <= due) {
                Some(event) => schedule.event(ms(event), true),
                None if due > end => return runs,
                None => {
                    assert!(schedule.begin(ms(due)).is_some());
                    schedule.end(ms(due + length), false);
                    runs.push(due);
                    free_at = due + length;
                }
            }
        }
    }

    #[test]
    fn a_run_follows_quiet_or_two_seconds() {
        assert_eq!(runs(&[1000], 100, 10_000), [1200]);
        assert_eq!(runs(&[1000, 1150, 1300], 100, 10_000), [1500]);
        let storm: Vec<u64> = (0..30).map(|n| 1000 + 100 * n).collect();
        assert_eq!(runs(&storm, 10, 10_000), [3000, 4100]);
        // During the run.
        assert_eq!(runs(&[1000, 1300], 5000, 20_000), [1200, 6200]);
    }

    #[test]
    fn pauses_double_and_end_with_the_storm() {
        let storm: Vec<u64> = (0..2000).map(|n| n * 250).collect();
        let mut times = runs(&storm, 10, 500_000);
        let pauses: Vec<u64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) / 1000)
            .collect();
        assert_eq!(pauses[..11], [0, 0, 0, 0, 0, 8, 16, 32, 60, 60, 60]);
        // Six runs are free again after a calm minute.
        let calm = 700_000;
        let again: Vec<u64> = storm
            .iter()
            .copied()
            .chain((0..8).map(|n| calm + 1000 * n))
            .collect();
        times = runs(&again, 10, 720_000);
        times.retain(|&run| run >= calm);
        assert_eq!(
            times[..6],
            [0, 1, 2, 3, 4, 5].map(|n| calm + 200 + 1000 * n)
        );
        assert!(
            times.last().unwrap() - times[times.len() - 2] >= 8000,
            "{times:?}"
        );
    }

    #[test]
    fn six_runs_a_minute_are_never_put_off() {
        let events: Vec<u64> = (0..100).map(|n| n * 10_000).collect();
        let expected: Vec<u64> = events.iter().map(|event| event + 200).collect();
        assert_eq!(runs(&events, 1000, 1_000_000), expected);
        // As drivers that are loaded again come: some runs each, and calm between.
        let groups: Vec<u64> = (0..20)
            .flat_map(|n| [0, 1200, 2500, 4000].map(|at| n * 40_000 + at))
            .collect();
        let expected: Vec<u64> = groups.iter().map(|event| event + 200).collect();
        assert_eq!(runs(&groups, 900, 800_000), expected);
    }

    /// What a boot under emulation was seen to bring: the start, irqbalance, drivers that are loaded one after another.
    #[test]
    fn new_interfaces_are_not_put_off_at_boot() {
        let mut schedule = Schedule::new(ms(0));
        let is_new = |at| [14_600, 17_600, 31_000, 34_000].contains(&at);
        for at in [
            0, 4000, 6000, 14_600, 15_600, 17_600, 19_800, 24_000, 29_000, 31_000, 32_500, 34_000,
        ] {
            schedule.event(ms(at), at != 0 && !is_new(at));
            assert_eq!(schedule.due(), ms(at + 200));
            assert_eq!(schedule.begin(ms(at + 200)), Some(Demand::Events));
            schedule.end(ms(at + 900), false);
        }
    }

    /// In a pause after a storm.
    #[test]
    fn what_does_not_come_in_storms_waits_for_no_pause() {
        let mut schedule = Schedule::new(ms(0));
        for at in 0..6 {
            schedule.event(ms(1000 * at), true);
            schedule.begin(ms(1000 * at + 200)).unwrap();
        }
        schedule.event(ms(6000), true);
        assert_eq!(schedule.due(), ms(5200 + 8000));
        schedule.event(ms(6100), false);
        assert_eq!(schedule.due(), ms(6300));
        assert_eq!(schedule.begin(ms(6300)), Some(Demand::Events));
        // Nor does a try after a failure, and neither makes the pause longer.
        schedule.end(ms(6500), true);
        schedule.event(ms(6600), true);
        assert_eq!(schedule.due(), ms(7500));
        assert_eq!(schedule.begin(ms(7500)), Some(Demand::Events));
        schedule.end(ms(7600), false);
        schedule.event(ms(7700), true);
        assert_eq!(schedule.due(), ms(13_200));
    }

    #[test]
    fn a_request_waits_for_nothing() {
        let mut schedule = Schedule::new(ms(0));
        for _ in 0..6 {
            schedule.event(ms(0), true);
            assert_eq!(schedule.begin(ms(3000)), Some(Demand::Events));
        }
        schedule.event(ms(3000), true);
        assert_eq!(schedule.begin(ms(6000)), None);
        schedule.at_once(ms(6000));
        assert_eq!(schedule.begin(ms(6000)), Some(Demand::Events));
        assert!(schedule.events.is_none());
    }

    #[test]
    fn failures_are_tried_again_less_and_less_often() {
        let mut schedule = Schedule::new(ms(0));
        let mut now = ms(0);
        schedule.at_once(now);
        let mut waits = Vec::new();
        for _ in 0..11 {
            schedule.begin(now).unwrap();
            schedule.end(now, true);
            waits.push(schedule.due().saturating_sub(now).as_secs());
            now = schedule.due();
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(schedule.begin(now), Some(Demand::Retry));
        schedule.end(now, false);
        assert_eq!(schedule.due(), now + PERIOD);
        assert_eq!(schedule.begin(now + PERIOD), Some(Demand::Periodic));
    }

    proptest! {
        #[test]
        fn sixty_flaps_are_at_most_ten_runs(spacing in 1..12_000_u64, length in 0..2000_u64) {
            let flaps: Vec<u64> = (0..60).map(|n| n * spacing).collect();
            let last = *flaps.last().unwrap();
            let runs = runs(&flaps, length, last + 62_000);
            // Within a minute ten; six more in each further one.
            let most = 10 + 6 * (last / 60_000);
            prop_assert!(u64::try_from(runs.len()).unwrap() <= most, "{runs:?}");
            prop_assert!(*runs.last().unwrap() > last, "{runs:?}");
        }

        #[test]
        fn nothing_is_lost_and_runs_are_few(gaps in proptest::collection::vec(0..20_000_u64, 1..80), length in 0..3000_u64) {
            let events: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let last = *events.last().unwrap();
            let runs = runs(&events, length, last + 62_000 + length);
            for event in &events {
                let after = runs.iter().find(|run| *run >= event).unwrap();
                prop_assert!(after - event <= 62_000 + length, "{event} in {runs:?}");
            }
            for pair in runs.windows(2) {
                prop_assert!(pair[1] - pair[0] >= length);
            }
            for (at, first) in runs.iter().enumerate() {
                let in_a_minute = runs[at..].iter().filter(|run| **run < first + 60_000).count();
                prop_assert!(in_a_minute <= 11, "{runs:?}");
                // An event is before each but the periodic ones.
                let begins = at.checked_sub(1).map_or(0, |before| runs[before]);
                let is_wanted = events.iter().any(|event| (begins..=*first).contains(event));
                prop_assert!(is_wanted || first - begins >= 300_000, "{first} in {runs:?}");
            }
        }

        #[test]
        fn a_run_is_never_early(gaps in proptest::collection::vec(1..3000_u64, 1..40)) {
            let events: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let runs = runs(&events, 0, events.last().unwrap() + 100_000);
            for (at, run) in runs.iter().enumerate() {
                let before = at.checked_sub(1).map(|before| runs[before]);
                let mut since = events.iter().filter(|event| Some(**event) > before && *event <= run);
                let first = since.next().unwrap();
                let last = since.next_back().unwrap_or(first);
                prop_assert!(*run >= (last + 200).min(first + 2000), "{run} in {runs:?}");
            }
        }
    }
}
