//! The watcher's decisions: when to run, which settings a run leaves unchanged, and what follows from its result. Pure:
//! events, results and the time are passed in.

use std::mem::take;
use std::time::Duration;

use crate::watch::contended::ContendedSettings;
use crate::watch::event::{Event, EventKind, Events};
use crate::watch::report::{RestoredSetting, RunReport};
use crate::watch::schedule::Schedule;

#[derive(Default)]
pub struct Decisions {
    pub schedule: Schedule,
    pub contended: ContendedSettings,
    /// An earlier run may have caused all events of the next one.
    follows_up: bool,
    run: Option<Running>,
}

#[derive(Default)]
struct Running {
    is_of_old_plan: bool,
    follows_up: bool,
    during: Events,
}

pub struct RunEnd {
    /// Its writes were planned before, so that another program may have undone them.
    pub is_of_old_plan: bool,
    pub contended: Vec<(RestoredSetting, Duration)>,
}

impl Decisions {
    pub fn new(now: Duration) -> Self {
        Self {
            schedule: Schedule::new(now),
            ..Self::default()
        }
    }

    pub fn take_event(&mut self, event: Event, now: Duration) {
        if let Some(interface) = event.explains() {
            self.contended.begin_anew(interface);
        }
        if event.kind == EventKind::Irqbalance {
            self.contended.irqbalance_started(now);
        }
        match &mut self.run {
            // The run's own writes; at its end the affinities are read for others' writes.
            Some(_) if event.kind == EventKind::Affinity => {}
            Some(run) => run.during.extend(event),
            None => {
                self.schedule.add(event, now);
                self.follows_up = false;
            }
        }
    }

    pub fn begin(&mut self, now: Duration) -> Option<Events> {
        let events = self.schedule.begin(now)?;
        self.run = Some(Running {
            is_of_old_plan: events.are_of_old_plan(),
            follows_up: take(&mut self.follows_up),
            during: Events::default(),
        });
        Some(events)
    }

    /// The run took `cost` of CPU time. `report`: `None` if it failed as a whole. `moved`: a planned vector that
    /// another program has moved meanwhile.
    pub fn end_run(
        &mut self,
        report: Option<&RunReport>,
        moved: Option<Event>,
        cost: Duration,
        now: Duration,
    ) -> RunEnd {
        let Running {
            is_of_old_plan,
            follows_up,
            mut during,
        } = self.run.take().unwrap_or_default();
        if let Some(event) = moved {
            during.extend(event);
        }
        let mut is_again = false;
        if !during.is_empty() {
            // If the run may have caused these events, another run follows at once. If this one is that other run, it is
            // retried as after a failure, less and less often.
            self.follows_up =
                report.is_some_and(|report| during.may_be_own(report.channels, report.irqbalance));
            is_again = self.follows_up && follows_up;
            if !is_again {
                self.schedule.add(during, now);
            }
        }
        let has_failed = report.is_none_or(|report| report.failed > 0);
        self.schedule.end(now, cost, is_again || has_failed);
        let mut contended = Vec::new();
        if let Some(report) = report.filter(|report| !report.paused) {
            self.contended.forget(now);
            if report.irqbalance_silent {
                self.contended.irqbalance_silent(now);
            }
            let answered = report.irqbalance_answered;
            if answered.is_some_and(|process| self.contended.irqbalance_answered(process, now)) {
                // This run has left them unchanged.
                self.schedule
                    .add(Event::of_machine(EventKind::Irqbalance), now);
            }
            for written in report.written.iter().filter(|_| is_of_old_plan) {
                let wait = self.contended.written(written, now);
                contended.extend(wait.map(|wait| (written.clone(), wait)));
            }
        }
        let next = self
            .contended
            .unrestored_settings(now)
            .map(|(_, until)| until)
            .min();
        self.schedule.look_at(next);
        RunEnd {
            is_of_old_plan,
            contended,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nicpin::report::watcher::ChangedSetting;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Milliseconds of a step of the model.
    const STEP: u64 = 100;
    /// Milliseconds of a run, and of its CPU time.
    const RUN: u64 = 200;
    /// Milliseconds from an event about its interface until a setting has been as planned.
    const WITHIN: u64 = 5000;
    const HOUR: u64 = 3_600_000;
    const INTERFACES: usize = 2;
    const QUEUES: usize = 3;

    #[derive(Debug, Clone)]
    enum Act {
        /// An event about an interface; whether the driver forgets its settings and makes new IRQs.
        Link(usize, bool),
        Channels(usize),
        /// A CPU goes or comes: all settings are lost.
        Cpu,
        /// irqbalance restarts, moves all queues until it has the bans, and answers after so many milliseconds.
        Irqbalance(u64),
        /// Another program writes once, every second from now on, or no more.
        Write(usize),
        Begin(usize),
        End(usize),
    }

    /// The interface is a setting's number modulo [`INTERFACES`].
    #[derive(Debug, Clone, Default)]
    struct Model {
        is_planned: bool,
        irq: u32,
        has_writer: bool,
        /// When it has to have been as planned after an event.
        by: Option<u64>,
        restores: Vec<u64>,
    }

    struct World {
        decisions: Decisions,
        now: u64,
        settings: Vec<Model>,
        guarded: BTreeSet<usize>,
        run: Option<(u64, BTreeSet<usize>)>,
        process: i32,
        has_bans: bool,
        answers_at: u64,
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    impl World {
        fn new() -> Self {
            let mut world = Self {
                decisions: Decisions::new(Duration::ZERO),
                now: 0,
                settings: vec![Model::default(); INTERFACES * QUEUES],
                guarded: BTreeSet::new(),
                run: None,
                process: 800,
                has_bans: true,
                answers_at: 0,
            };
            world.event(Event::of_machine(EventKind::Start));
            world
        }

        fn event(&mut self, event: Event) {
            self.decisions.take_event(event, ms(self.now));
        }

        fn restored(&self, at: usize) -> RestoredSetting {
            RestoredSetting {
                setting: ChangedSetting {
                    name: format!("queue {at}").into(),
                    interface: format!("eth{}", at % INTERFACES),
                    path: format!("/proc/irq/{}/smp_affinity", self.settings[at].irq),
                },
                value: "02".to_owned(),
                writers: Vec::new(),
            }
        }

        fn unrestored_settings(&self) -> BTreeSet<usize> {
            let left = self.decisions.contended.unrestored_settings(ms(self.now));
            let left: Vec<_> = left.map(|(left, _)| left.clone()).collect();
            let is_left = |at: &usize| left.iter().any(|left| left.is_same(&self.restored(*at)));
            (0..self.settings.len()).filter(is_left).collect()
        }

        fn concern(&mut self, is_concerned: impl Fn(usize) -> bool, is_lost: bool) {
            let by = self.now + WITHIN;
            for (_, setting) in self
                .settings
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| is_concerned(*at))
            {
                setting.is_planned &= !is_lost;
                setting.restores.clear();
                setting.by.get_or_insert(by);
            }
        }

        fn act(&mut self, act: &Act) {
            match *act {
                Act::Link(interface, is_lost) => {
                    self.concern(|at| at % INTERFACES == interface, is_lost);
                    self.event(Event::new(EventKind::Link, format!("eth{interface}")));
                }
                Act::Channels(interface) => {
                    self.concern(|at| at % INTERFACES == interface, true);
                    for setting in self.settings.iter_mut().skip(interface).step_by(INTERFACES) {
                        setting.irq += 1;
                    }
                    self.event(Event::new(EventKind::Channels, format!("eth{interface}")));
                }
                Act::Cpu => {
                    self.concern(|_| true, true);
                    self.event(Event::new(EventKind::Cpu, "3"));
                }
                Act::Irqbalance(answers) => {
                    self.process += 1;
                    (self.has_bans, self.answers_at) = (false, self.now + answers);
                    self.event(Event::of_machine(EventKind::Irqbalance));
                }
                Act::Write(at) => self.write(at),
                Act::Begin(at) => self.settings[at].has_writer = true,
                Act::End(at) => self.settings[at].has_writer = false,
            }
        }

        fn write(&mut self, at: usize) {
            self.settings[at].is_planned = false;
            if self.guarded.contains(&at) {
                self.event(Event::new(EventKind::Affinity, at.to_string()));
            }
        }

        fn step(&mut self) -> Result<(), TestCaseError> {
            self.now += STEP;
            if self.now % 1000 == 0 {
                for at in 0..self.settings.len() {
                    if self.settings[at].has_writer || !self.has_bans {
                        self.write(at);
                    }
                }
            }
            if let Some((_, wrong)) = self.run.take_if(|(end, _)| *end <= self.now) {
                self.end_run(wrong);
            }
            if self.run.is_none() && self.decisions.schedule.due() <= ms(self.now) {
                let left = self.unrestored_settings();
                prop_assert!(self.decisions.begin(ms(self.now)).is_some());
                let wrong = |at: &usize| !self.settings[*at].is_planned && !left.contains(at);
                let wrong = (0..self.settings.len()).filter(wrong).collect();
                self.run = Some((self.now + RUN, wrong));
            }
            for (at, setting) in self.settings.iter_mut().enumerate() {
                if setting.is_planned {
                    setting.by = None;
                }
                prop_assert!(
                    setting.by.is_none_or(|by| self.now < by),
                    "{at} is wrong at {}",
                    self.now
                );
                let (now, restores) = (self.now, &mut setting.restores);
                restores.retain(|then| now <= *then + HOUR);
                prop_assert!(setting.restores.len() <= 12, "{at}: {:?}", setting.restores);
            }
            Ok(())
        }

        fn end_run(&mut self, mut wrong: BTreeSet<usize>) {
            let had_bans = self.has_bans;
            let answers = had_bans || self.answers_at <= self.now;
            if answers && !had_bans {
                self.has_bans = true;
                self.settings
                    .iter_mut()
                    .for_each(|setting| setting.restores.clear());
                let left = self.unrestored_settings();
                let others = (0..self.settings.len()).filter(|at| !left.contains(at));
                wrong.extend(others.filter(|at| !self.settings[*at].is_planned));
            }
            for &at in &wrong {
                self.settings[at].is_planned = true;
                // Undoing irqbalance's moves before its answer is no restore.
                if had_bans {
                    self.settings[at].restores.push(self.now);
                }
            }
            let report = RunReport {
                changed: wrong.len(),
                failed: usize::from(!answers),
                irqbalance: answers && !had_bans,
                irqbalance_answered: answers.then_some(self.process),
                written: wrong.iter().map(|at| self.restored(*at)).collect(),
                ..RunReport::default()
            };
            let moved = self
                .guarded
                .iter()
                .find(|at| !self.settings[**at].is_planned);
            let moved = moved.map(|at| Event::new(EventKind::Affinity, at.to_string()));
            (self.decisions).end_run(Some(&report), moved, ms(RUN), ms(self.now));
            let left = self.unrestored_settings();
            self.guarded = (0..self.settings.len())
                .filter(|at| !left.contains(at))
                .collect();
        }

        fn go_on(&mut self, milliseconds: u64) -> Result<(), TestCaseError> {
            let end = self.now + milliseconds;
            while self.now < end {
                self.step()?;
            }
            Ok(())
        }
    }

    fn act() -> impl Strategy<Value = Act> {
        let queue = || 0..INTERFACES * QUEUES;
        prop_oneof![
            (0..INTERFACES, any::<bool>())
                .prop_map(|(interface, is_lost)| Act::Link(interface, is_lost)),
            (0..INTERFACES).prop_map(Act::Channels),
            Just(Act::Cpu),
            (0..15_000_u64).prop_map(Act::Irqbalance),
            queue().prop_map(Act::Write),
            queue().prop_map(Act::Begin),
            queue().prop_map(Act::End),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// No setting stays wrong across an event about its interface, none is restored more than a dozen times an hour
        /// without one, and after the last event and write all is as planned within seconds.
        #[test]
        fn events_begin_anew_and_writers_are_answered_less_and_less(
            acts in vec((prop_oneof![0..3000_u64, 0..3000_u64, 0..1_200_000_u64], act()), 1..30),
            last in prop_oneof![Just(Act::Cpu), (0..3000_u64).prop_map(Act::Irqbalance)],
        ) {
            let mut world = World::new();
            for (gap, act) in &acts {
                world.go_on(*gap)?;
                world.act(act);
            }
            (0..world.settings.len()).for_each(|at| world.act(&Act::End(at)));
            world.go_on(15_000)?;
            world.act(&last);
            world.go_on(3000 + WITHIN)?;
            prop_assert!(world.settings.iter().all(|setting| setting.is_planned), "{:?}", world.settings);
        }

        #[test]
        fn one_that_writes_every_second_is_answered_a_dozen_times_an_hour(others in vec(0..600_000_u64, 0..10)) {
            let mut world = World::new();
            world.go_on(5000)?;
            world.act(&Act::Begin(0));
            for gap in others {
                world.go_on(gap)?;
                world.act(&Act::Link(1, true));
            }
            world.go_on(2 * HOUR)?;
            let lately = !world.settings[0].restores.is_empty();
            world.go_on(2000)?;
            prop_assert!(lately || !world.settings[0].restores.is_empty());
            prop_assert!(world.settings[1..].iter().all(|setting| setting.is_planned));
        }
    }

    #[test]
    fn restarts_of_irqbalance_leave_nothing_unrestored() {
        let mut world = World::new();
        world.go_on(5000).unwrap();
        for _ in 0..4 {
            (0..6).for_each(|at| world.act(&Act::Write(at)));
            world.act(&Act::Irqbalance(2000));
            world.go_on(5000).unwrap();
            assert!(world.settings.iter().all(|setting| setting.is_planned));
            assert!(world.unrestored_settings().is_empty());
        }
    }
}
