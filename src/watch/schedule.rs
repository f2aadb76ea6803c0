//! When to run: quiet after the last event, a limited number of runs, a periodic check, and another try after a failure.
//! Pure: the time is passed in, as the duration since any fixed moment.

use std::time::Duration;

/// A run waits until this long after the last event, and at most so long after the first one.
const QUIET: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// Runs without a pause, and the time without a run in which one of them is allowed again.
const RUNS: u32 = 6;
const REFILL: Duration = Duration::from_secs(10);
/// Pauses between runs when those are used up. They double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// A run without an event, for what nobody announces.
pub(super) const PERIOD: Duration = Duration::from_secs(300);
/// Before another try after a failure; doubles up to [`PERIOD`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// When the next run starts.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The first and the last event since the last run started.
    events: Option<(Duration, Duration)>,
    /// Whether to run without waiting for anything.
    at_once: bool,
    tokens: u32,
    /// The time of the last run, up to which tokens were added.
    refilled: Duration,
    /// No run before this.
    not_before: Duration,
    /// The next pause.
    pause: Duration,
    check_at: Duration,
    retry_at: Option<Duration>,
    retry: Duration,
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
            tokens: RUNS,
            refilled: now,
            not_before: now,
            pause: FIRST_PAUSE,
            check_at: now + PERIOD,
            retry_at: None,
            retry: FIRST_RETRY,
        }
    }

    pub fn event(&mut self, now: Duration) {
        let first = self.events.map_or(now, |(first, _)| first);
        self.events = Some((first, now));
    }

    /// Somebody asked for a run: it waits neither for quiet nor for a pause.
    pub fn at_once(&mut self, now: Duration) {
        self.event(now);
        self.at_once = true;
    }

    /// Whether events wait for a run.
    pub fn has_events(&self) -> bool {
        self.events.is_some()
    }

    /// The time of the periodic check.
    pub fn next_check(&self) -> Duration {
        self.check_at
    }

    /// When quiet would allow a run, whatever the number of runs.
    fn wanted_at(&self) -> Duration {
        let quiet = self.events.map(|(first, last)| (last + QUIET).min(first + LONGEST));
        [quiet, self.retry_at].into_iter().flatten().fold(self.check_at, Duration::min)
    }

    /// When the next run is due.
    pub fn due(&self) -> Duration {
        if self.at_once { Duration::ZERO } else { self.wanted_at().max(self.not_before) }
    }

    /// Begins a run if one is due.
    pub fn begin(&mut self, now: Duration) -> Option<Demand> {
        if now < self.due() {
            return None;
        }
        let demand = match self.events {
            Some(_) => Demand::Events,
            None if self.retry_at.is_some_and(|at| at <= now) => Demand::Retry,
            None => Demand::Periodic,
        };
        self.spend(now);
        (self.events, self.at_once, self.retry_at) = (None, false, None);
        self.check_at = now + PERIOD;
        Some(demand)
    }

    /// Takes a token. When none is left, a pause follows.
    fn spend(&mut self, now: Duration) {
        if self.wanted_at() < self.not_before {
            // It was put off: what was saved up during the pause is this run.
            (self.tokens, self.refilled) = (0, now);
        } else {
            let more = now.saturating_sub(self.refilled).as_secs() / REFILL.as_secs();
            let more = u32::try_from(more).unwrap_or(RUNS);
            self.refilled = now;
            self.tokens = self.tokens.saturating_add(more).min(RUNS);
            if self.tokens == RUNS {
                self.pause = FIRST_PAUSE;
            }
            self.tokens = self.tokens.saturating_sub(1);
        }
        if self.tokens == 0 {
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
            let due = u64::try_from(schedule.due().as_millis()).unwrap().max(free_at);
            match events.next_if(|&event| event <= due) {
                Some(event) => schedule.event(ms(event)),
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
    fn sixty_flaps_are_at_most_ten_runs() {
        for spacing in [300, 500, 1000, 2000] {
            let flaps: Vec<u64> = (0..60).map(|n| n * spacing).collect();
            let last = *flaps.last().unwrap();
            let runs = runs(&flaps, 300, last + 62_000);
            assert!(runs.len() <= 10 + usize::try_from(last / 60_000).unwrap(), "{spacing}: {runs:?}");
            assert!(*runs.last().unwrap() > last, "{spacing}: {runs:?}");
        }
    }

    #[test]
    fn pauses_double_and_end_with_the_storm() {
        let storm: Vec<u64> = (0..2000).map(|n| n * 250).collect();
        let mut times = runs(&storm, 10, 500_000);
        let pauses: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        assert_eq!(pauses[..10], [0, 0, 0, 0, 0, 10, 20, 40, 60, 60]);
        // Six runs are free again after a calm minute.
        let calm = 700_000;
        let again: Vec<u64> = storm.iter().copied().chain((0..8).map(|n| calm + 1000 * n)).collect();
        times = runs(&again, 10, 720_000);
        times.retain(|&run| run >= calm);
        assert_eq!(times[..6], [0, 1, 2, 3, 4, 5].map(|n| calm + 200 + 1000 * n));
        assert!(times.last().unwrap() - times[times.len() - 2] >= 10_000, "{times:?}");
    }

    #[test]
    fn a_request_waits_for_nothing() {
        let mut schedule = Schedule::new(ms(0));
        for _ in 0..RUNS {
            schedule.event(ms(0));
            assert_eq!(schedule.begin(ms(3000)), Some(Demand::Events));
        }
        schedule.event(ms(3000));
        assert_eq!(schedule.begin(ms(6000)), None);
        schedule.at_once(ms(6000));
        assert_eq!(schedule.begin(ms(6000)), Some(Demand::Events));
        assert!(!schedule.has_events());
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
                prop_assert!(in_a_minute <= 12, "{runs:?}");
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
