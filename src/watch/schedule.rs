//! When to run: quiet after the last event, a budget of CPU time, a periodic check, and another try after a failure.
//! Pure: the time is passed in.

use std::mem::take;
use std::time::Duration;

use crate::watch::event::{Event, EventKind, Events};

/// A run waits so long after the last event, and at most [`LONGEST`] after the first.
const QUIET: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// CPU time of all runs that begin within a minute: 5 % of a core. When it is used up, runs begin [`APART`] from each
/// other; that no event waits longer is worth more than the budget.
const BUDGET: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_secs(60);
const APART: Duration = Duration::from_secs(2);
/// Between runs without an event, for changes that cause none.
const PERIOD: Duration = Duration::from_secs(300);
/// Before another try after a failure; doubles up to [`PERIOD`] until an event comes.
const FIRST_RETRY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Schedule {
    /// Events since the last run started, and when the first and the last of them came.
    events: Events,
    came: Option<(Duration, Duration)>,
    pub at_once: bool,
    runs: Vec<(Duration, Duration)>,
    pub check_at: Duration,
    retry_at: Option<Duration>,
    retry: Duration,
}

impl Schedule {
    pub fn new(now: Duration) -> Self {
        Self {
            check_at: now + PERIOD,
            retry: FIRST_RETRY,
            ..Self::default()
        }
    }

    pub fn add(&mut self, events: impl Into<Events>, now: Duration) {
        self.came.get_or_insert((now, now)).1 = now;
        self.events.extend(events);
    }

    pub fn due(&self) -> Duration {
        if self.at_once {
            return Duration::ZERO;
        }
        let for_events = self.came.map(|(first, last)| {
            let quiet = (last + QUIET).min(first + LONGEST);
            let since = quiet.saturating_sub(MINUTE);
            let lately = self.runs.iter().filter(|(began, _)| *began > since);
            match self.runs.last() {
                Some((began, _)) if lately.map(|(_, cost)| cost).sum::<Duration>() >= BUDGET => {
                    quiet.max(*began + APART)
                }
                _ => quiet,
            }
        });
        for_events
            .into_iter()
            .chain(self.retry_at)
            .fold(self.check_at, Duration::min)
    }

    pub fn look_at(&mut self, time: Option<Duration>) {
        self.check_at = time.map_or(self.check_at, |time| time.min(self.check_at));
    }

    pub fn begin(&mut self, now: Duration) -> Option<Events> {
        if now < self.due() {
            return None;
        }
        let mut events = take(&mut self.events);
        if self.came.take().is_none() {
            let is_retry = self.retry_at.is_some_and(|at| at <= now);
            let kind = if is_retry {
                EventKind::Retry
            } else {
                EventKind::Periodic
            };
            events = Event::of_machine(kind).into();
        } else {
            self.retry = FIRST_RETRY;
        }
        (self.at_once, self.retry_at) = (false, None);
        self.check_at = now + PERIOD;
        self.runs.retain(|(began, _)| *began + MINUTE >= now);
        self.runs.push((now, Duration::ZERO));
        Some(events)
    }

    /// The run took `cost` of CPU time. `again`: retry it.
    pub fn end(&mut self, now: Duration, cost: Duration, again: bool) {
        if let Some((_, of_run)) = self.runs.last_mut() {
            *of_run += cost;
        }
        self.retry_at = again.then(|| now + self.retry);
        self.retry = if again {
            PERIOD.min(2 * self.retry)
        } else {
            FIRST_RETRY
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn runs(events: &[u64], length: u64, end: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(ms(0));
        let (mut runs, mut events) = (Vec::new(), events.iter().copied().peekable());
        let mut free_at = 0;
        loop {
            let due = u64::try_from(schedule.due().as_millis())
                .unwrap()
                .max(free_at);
            match events.next_if(|&event| event <= due) {
                Some(event) => schedule.add(Event::of_machine(EventKind::Link), ms(event)),
                None if due > end => return runs,
                None => {
                    assert!(schedule.begin(ms(due)).is_some());
                    schedule.end(ms(due + length), ms(length), false);
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
        assert_eq!(runs(&[1000, 1300], 5000, 20_000), [1200, 6200]);
    }

    /// Nine changes of channels a second apart, and a vector that somebody writes by hand after them.
    #[test]
    fn work_on_the_machine_is_followed_at_once() {
        let events: Vec<u64> = (1..=9).map(|n| n * 1000).chain([12_000]).collect();
        let expected: Vec<u64> = events.iter().map(|event| event + 200).collect();
        assert_eq!(runs(&events, 40, 60_000), expected);
    }

    #[test]
    fn dear_runs_are_two_seconds_apart_when_their_budget_is_used_up() {
        // 75 ms each: 40 of them are 3 s.
        let storm: Vec<u64> = (0..400).map(|n| n * 250).collect();
        let times = runs(&storm, 75, 99_000);
        let apart = |at: usize| times[at + 1] - times[at];
        assert!((0..39).all(|at| apart(at) == 250), "{times:?}");
        assert!((39..times.len() - 1).all(|at| apart(at) >= 2000 || times[at] >= 60_000));
    }

    #[test]
    fn a_request_waits_for_nothing() {
        let mut schedule = Schedule::new(ms(0));
        let link = Events::from(Event::of_machine(EventKind::Link));
        schedule.add(link.clone(), ms(0));
        assert_eq!(schedule.begin(ms(3000)), Some(link.clone()));
        schedule.end(ms(7000), ms(4000), false);
        schedule.add(link.clone(), ms(4000));
        assert_eq!(schedule.begin(ms(4900)), None);
        schedule.at_once = true;
        assert_eq!(schedule.begin(ms(4900)), Some(link));
        assert!(schedule.came.is_none() && schedule.events.is_empty());
    }

    #[test]
    fn failures_are_tried_again_less_and_less_often() {
        let mut schedule = Schedule::new(ms(0));
        let mut now = ms(0);
        schedule.at_once = true;
        let mut waits = Vec::new();
        for _ in 0..11 {
            schedule.begin(now).unwrap();
            schedule.end(now, ms(40), true);
            waits.push(schedule.due().saturating_sub(now).as_secs());
            now = schedule.due();
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        schedule.add(Event::of_machine(EventKind::Link), now);
        schedule.begin(now).unwrap();
        schedule.end(now, ms(40), true);
        assert_eq!(schedule.due(), now + FIRST_RETRY, "an event begins anew");
        now = schedule.due();
        assert_eq!(
            schedule.begin(now),
            Some(Event::of_machine(EventKind::Retry).into())
        );
        schedule.end(now, ms(40), false);
        assert_eq!(schedule.due(), now + PERIOD);
        assert_eq!(
            schedule.begin(now + PERIOD),
            Some(Event::of_machine(EventKind::Periodic).into())
        );
    }

    fn check(gaps: &[u64], length: u64) -> Result<(), TestCaseError> {
        let events: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        let last = *events.last().unwrap();
        let runs = runs(&events, length, last + 10_000 + 2 * length);
        for event in &events {
            let after = runs.iter().find(|run| *run >= event).unwrap();
            prop_assert!(after - event <= length.max(2000), "{event} in {runs:?}");
        }
        for (at, run) in runs.iter().enumerate().skip(1) {
            let before = runs[at - 1];
            prop_assert!(run - before >= length);
            // Either there is time left in the budget of a minute, or the runs are apart.
            let lately = runs[..at].iter().filter(|then| **then + 60_000 > *run);
            let spent = u64::try_from(lately.count()).unwrap() * length;
            prop_assert!(spent < 3000 || run - before >= 2000, "{run} in {runs:?}");
            // An event is before each but the periodic ones.
            let is_wanted = events.iter().any(|event| (before..=*run).contains(event));
            prop_assert!(is_wanted || run - before >= 300_000, "{run} in {runs:?}");
        }
        Ok(())
    }

    #[test]
    fn thirteen_events_in_fifty_seconds_are_answered_within_two_seconds() {
        let gaps = [
            0, 923, 18_953, 1068, 1134, 5883, 166, 2915, 12_907, 3437, 2614, 201, 978,
        ];
        for length in [0, 40, 400, 3000] {
            check(&gaps, length).unwrap();
        }
    }

    proptest! {
        #[test]
        fn nothing_is_late_and_the_cost_is_bounded(
            gaps in proptest::collection::vec(0..20_000_u64, 1..80),
            length in 0..3000_u64,
        ) {
            check(&gaps, length)?;
        }

        #[test]
        fn storms_are_answered_as_well(
            gaps in proptest::collection::vec(0..600_u64, 1..300),
            length in 0..300_u64,
        ) {
            check(&gaps, length)?;
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
