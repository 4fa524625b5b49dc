//! The loop itself: polls the tasks that can go on, then waits for what comes next.

use super::alarm::Alarm;
use super::backend::Backend;
use super::epoll::Epoll;
use super::gather::give_way;
use super::network::Network;
use super::slots::Slots;
use super::uring::Uring;
use crate::clock;
use crate::error::Result;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The longest wait: how late a stop, an interrupt or a silent server may be noticed.
const TURN_MAX_NS: u64 = 20_000_000;
/// The same for a loop that an alarm wakes: its thread has to hand over what it counted in each second.
const ALARMED_TURN_MAX_NS: u64 = 1_000_000_000;
const SILENCE_CHECK_NS: u64 = 100_000_000;
/// Stands for the network among the tasks that a timer wakes.
const NETWORK: u32 = u32::MAX;

pub(super) struct Loop {
    pub slots: Slots,
    driver: Driver,
    /// When each is due, the task that it wakes, and its own number.
    timers: BinaryHeap<Reverse<(u64, u32, u64)>>,
    timers_made: u64,
    /// Timers for which nobody waits any more.
    cancelled: HashSet<u64>,
    pub network: Network,
    /// The time at the start of this turn: near enough for a server's patience.
    pub turn_ns: u64,
    silence_checked_ns: u64,
}

enum Driver {
    Uring(Box<Uring>),
    Epoll(Epoll),
    Blocking,
    /// The same, woken by an alarm, of which so many rings were heard.
    Alarmed(Arc<Alarm>, u64),
    Simulated,
}

/// A thread's loop, as its executor and its streams hold it: what happens for every answer asks no thread-local.
#[derive(Clone, Default)]
pub(super) struct Held(Rc<HeldLoop>);

#[derive(Default)]
struct HeldLoop {
    /// The task that is being polled: beside the loop, because it changes for every answer.
    running: Cell<u32>,
    /// Empty when the executor is gone.
    this: RefCell<Option<Loop>>,
}

thread_local! {
    static LOOP: RefCell<Held> = RefCell::default();
}

impl Held {
    /// The loop of this thread.
    pub fn here() -> Self {
        LOOP.with_borrow(Held::clone)
    }

    /// Panics outside of an `Executor`: a defect of the driver.
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Loop) -> T) -> T {
        work(self.0.this.borrow_mut().as_mut().expect("a thread's loop lives as long as its executor"))
    }

    /// The task that is being polled.
    #[inline]
    pub fn running(&self) -> u32 {
        self.0.running.get()
    }

    /// The same where the loop may be gone already: a stream can outlive it.
    pub fn with_if_any(&self, work: impl FnOnce(&mut Loop)) {
        if let Some(this) = self.0.this.borrow_mut().as_mut() {
            work(this);
        }
    }
}

/// Works on the loop of this thread, as `Held::with` does.
pub(super) fn with_loop<T>(work: impl FnOnce(&mut Loop) -> T) -> T {
    LOOP.with_borrow(|held| held.with(work))
}

/// The task of this thread that is being polled.
pub(super) fn running() -> u32 {
    LOOP.with_borrow(Held::running)
}

/// The same where the loop may be gone already.
pub(super) fn with_loop_if_any(work: impl FnOnce(&mut Loop)) {
    // A thread that is ending has no locals any more, and no loop either.
    let _ = LOOP.try_with(|held| held.borrow().with_if_any(work));
}

impl Loop {
    fn turn(&mut self, patience_ns: u64) -> Result<()> {
        self.turn_ns = clock::now_ns();
        self.wake_timers();
        let wait_ns = if !self.slots.ready.is_empty() {
            0
        } else {
            let next_ns = self.timers.peek().map_or(u64::MAX, |Reverse((due_ns, ..))| *due_ns);
            next_ns.saturating_sub(self.turn_ns).min(patience_ns)
        };
        let expired = match &mut self.driver {
            Driver::Uring(uring) => uring.turn(&mut self.slots, self.turn_ns, wait_ns)?,
            Driver::Epoll(epoll) => epoll.turn(&mut self.slots, wait_ns)?,
            Driver::Blocking => {
                if wait_ns > 0 {
                    std::thread::sleep(Duration::from_nanos(wait_ns));
                }
                wait_ns > 0
            }
            Driver::Alarmed(alarm, heard) => wait_ns > 0 && alarm.sleep(heard, wait_ns),
            Driver::Simulated => {
                clock::simulate(Some(self.turn_ns + wait_ns));
                wait_ns > 0
            }
        };
        if expired {
            // What is due goes on at once, and not after another system call.
            self.turn_ns = clock::now_ns();
            self.wake_timers();
        }
        if self.turn_ns >= self.silence_checked_ns + SILENCE_CHECK_NS {
            self.silence_checked_ns = self.turn_ns;
            self.slots.end_silent(self.turn_ns);
        }
        Ok(())
    }

    /// Whether it sleeps for as long as nothing is due and its alarm does not ring.
    fn is_alarmed(&self) -> bool {
        matches!(self.driver, Driver::Alarmed(..))
    }

    fn wake_timers(&mut self) {
        while let Some(&Reverse((due_ns, task, number))) = self.timers.peek() {
            let cancelled = !self.cancelled.is_empty() && self.cancelled.remove(&number);
            if due_ns > self.turn_ns && !cancelled {
                break;
            }
            self.timers.pop();
            if cancelled {
                continue;
            }
            match task {
                NETWORK => self.network.deliver(&mut self.slots, self.turn_ns),
                task => self.slots.ready.push_back(task),
            }
        }
    }

    /// Wakes a task when it is time; gives the timer's number.
    fn wake_at(&mut self, due_ns: u64, task: u32) -> u64 {
        self.timers_made += 1;
        self.timers.push(Reverse((due_ns, task, self.timers_made)));
        self.timers_made
    }

    /// Takes what a connection has to say: it goes out with the next turn, or when the network has carried it.
    #[inline]
    pub fn hand_over(&mut self, slot: u32, outbox: &mut Vec<u8>) {
        match self.network.round_trip_ns {
            0 => self.slots.hand_over(slot, outbox),
            _ => self.carry(slot, outbox),
        }
    }

    /// `hand_over`, after which a task waits for what comes, at most for a time; false where it does not wait.
    #[inline]
    pub fn ask(&mut self, slot: u32, outbox: &mut Vec<u8>, task: u32, timeout_ns: u64) -> bool {
        if self.network.round_trip_ns > 0 {
            self.carry(slot, outbox);
            return false;
        }
        self.slots.ask(slot, outbox, task, self.turn_ns.saturating_add(timeout_ns))
    }

    #[cold]
    fn carry(&mut self, slot: u32, outbox: &mut Vec<u8>) {
        let due_ns = self.network.carry(slot, outbox, clock::now_ns());
        self.wake_at(due_ns, NETWORK);
    }
}

/// Runs any number of tasks on this thread. Tasks may borrow what outlives the executor.
pub struct Executor<'a> {
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()> + 'a>>>>,
    live: usize,
    gives_way: bool,
    held: Held,
    /// The loop is this thread's; so the executor must stay here.
    _here: PhantomData<*const ()>,
}

impl<'a> Executor<'a> {
    /// Readies this thread's loop for a few connections.
    pub fn new(backend: Backend) -> Result<Self> {
        Self::of_connections(backend, 1)
    }

    /// Readies this thread's loop for as many connections; more of them work, but have to share buffers.
    pub fn of_connections(backend: Backend, connections: usize) -> Result<Self> {
        let driver = match backend {
            Backend::IoUring => Driver::Uring(Box::new(Uring::new(connections)?)),
            Backend::Epoll => Driver::Epoll(Epoll::new()?),
            Backend::Blocking => Driver::Blocking,
            Backend::Simulated => Driver::Simulated,
        };
        let now_ns = clock::now_ns();
        let this = Loop {
            slots: Slots::default(),
            driver,
            timers: BinaryHeap::new(),
            timers_made: 0,
            cancelled: HashSet::new(),
            network: Network::default(),
            turn_ns: now_ns,
            silence_checked_ns: now_ns,
        };
        let held = Held(Rc::new(HeldLoop { running: Cell::new(0), this: RefCell::new(Some(this)) }));
        LOOP.set(held.clone());
        be_punctual(true);
        Ok(Executor { tasks: Vec::new(), live: 0, gives_way: false, held, _here: PhantomData })
    }

    /// Lets the server go first (see `gather`), for loads whose requests wait for nothing but answers: answers wait for
    /// a free CPU, and where the back end can, for each other while the machine is `crowded`.
    pub fn giving_way(mut self, crowded: Arc<AtomicBool>) -> Self {
        with_loop(|this| match &mut this.driver {
            Driver::Uring(uring) => {
                uring.allow_gathering(crowded);
                self.gives_way = give_way(true);
            }
            Driver::Epoll(_) => self.gives_way = give_way(true),
            // The thread is the server itself, or there is none.
            Driver::Blocking | Driver::Alarmed(..) | Driver::Simulated => {}
        });
        self
    }

    /// Lets a thread without connections sleep until something of its own is due or the alarm rings. Whoever changes what
    /// `run` asks for has to ring it.
    pub(crate) fn woken_by(self, alarm: &Arc<Alarm>) -> Self {
        with_loop(|this| {
            if matches!(this.driver, Driver::Blocking) {
                this.driver = Driver::Alarmed(alarm.clone(), 0);
            }
        });
        self
    }

    /// Has each flight of requests wait for so long before it goes out, and so each connection before it is used, as
    /// over a network with that round-trip time. Other tasks go on meanwhile.
    pub fn over_network(self, round_trip: Duration) -> Self {
        with_loop(|this| this.network.round_trip_ns = round_trip.as_nanos() as u64);
        self
    }

    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        with_loop(|this| this.slots.ready.push_back(self.tasks.len() as u32));
        self.tasks.push(Some(Box::pin(task)));
        self.live += 1;
    }

    /// Runs until all tasks are done, or until `abandon`, asked once per turn, is true.
    pub fn run(&mut self, mut abandon: impl FnMut() -> bool) -> Result<()> {
        let mut ready = VecDeque::new();
        while self.live > 0 && !abandon() {
            // Tasks woken while others are polled wait for the next turn: no task can starve the sockets.
            self.held.with(|this| std::mem::swap(&mut this.slots.ready, &mut ready));
            ready.drain(..).for_each(|task| self.poll(task));
            if self.live == 0 {
                return Ok(());
            }
            let (alarmed, patience_ns) = self.held.with(|this| match this.is_alarmed() {
                true => {
                    this.turn_ns = clock::now_ns();
                    (true, ALARMED_TURN_MAX_NS)
                }
                false => (false, TURN_MAX_NS),
            });
            // What tasks have just done may be what is asked for, and nobody rings for that.
            if alarmed && abandon() {
                return Ok(());
            }
            self.held.with(|this| this.turn(patience_ns))?;
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self, number: u32) {
        let Some(place) = self.tasks.get_mut(number as usize) else { return };
        let Some(task) = place else { return };
        self.held.0.running.set(number);
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            *place = None;
            self.live -= 1;
        }
    }
}

impl Executor<'_> {
    /// Gives up whatever is not done.
    pub fn drop_tasks(&mut self) {
        self.tasks.clear();
        self.live = 0;
    }
}

impl Drop for Executor<'_> {
    fn drop(&mut self) {
        // Tasks own streams, and streams say goodbye to the loop.
        self.drop_tasks();
        LOOP.take();
        let this = self.held.0.this.borrow_mut().take();
        if let Some(mut this) = this {
            // Sends what was handed over last (a COM_QUIT) and closes; a failure can no longer matter to anyone.
            this.slots.ready.push_back(0);
            let _ = this.turn(0);
        }
        be_punctual(false);
        if self.gives_way {
            give_way(false);
        }
    }
}

/// The kernel lets a thread's timers be late by 50 us unless told otherwise (prctl(2), PR_SET_TIMERSLACK); a start that
/// is late by that shows in every latency.
fn be_punctual(yes: bool) {
    // SAFETY: prctl(2), PR_SET_TIMERSLACK, takes numbers only; 0 gives the thread its default back. It cannot fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(yes)) };
}

/// The longest that this thread's loop let an answer lie so as to gather more, 0 when it never did.
pub(crate) fn gather_us_max() -> u32 {
    with_loop(|this| match &this.driver {
        Driver::Uring(uring) => uring.gather.as_ref().map_or(0, |gather| gather.wait_us_max),
        _ => 0,
    })
}

/// What a thread's loop has counted so far; nothing for a loop without connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoopUse {
    pub system_calls: u64,
    /// Time in which answers were let lie.
    pub gathered_ns: u64,
}

pub(crate) fn loop_use() -> LoopUse {
    with_loop(|this| match &this.driver {
        Driver::Uring(uring) => LoopUse {
            system_calls: uring.system_calls,
            gathered_ns: uring.gather.as_ref().map_or(0, |gather| gather.gathered_ns),
        },
        Driver::Epoll(epoll) => LoopUse { system_calls: epoll.system_calls, gathered_ns: 0 },
        Driver::Blocking | Driver::Alarmed(..) | Driver::Simulated => LoopUse::default(),
    })
}

/// When this thread's loop turned last.
pub(crate) fn turn_ns() -> u64 {
    with_loop(|this| this.turn_ns)
}

/// Runs one future to its end on a loop of its own.
pub fn block_on<T>(
    backend: Backend,
    future: impl Future<Output = T>,
    abandon: impl FnMut() -> bool,
) -> Result<Option<T>> {
    let result = std::cell::Cell::new(None);
    run_alone(backend, Box::pin(async { result.set(Some(future.await)) }), &mut { abandon })?;
    Ok(result.into_inner())
}

/// The same behind pointers, so that it is compiled once.
fn run_alone(
    backend: Backend,
    task: Pin<Box<dyn Future<Output = ()> + '_>>,
    abandon: &mut dyn FnMut() -> bool,
) -> Result<()> {
    let mut executor = Executor::new(backend)?;
    executor.spawn(task);
    executor.run(abandon)
}

/// A timer that a task waits for. It wakes nobody once it is dropped.
#[derive(Default)]
struct Timer(Option<u64>);

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            with_loop_if_any(|this| {
                this.cancelled.insert(number);
            });
        }
    }
}

/// Waits for a time of `clock::now_ns`.
pub async fn sleep_until_ns(due_ns: u64) {
    let mut timer = Timer::default();
    std::future::poll_fn(|_| {
        if clock::now_ns() >= due_ns {
            return Poll::Ready(());
        }
        timer.0.get_or_insert_with(|| with_loop(|this| this.wake_at(due_ns, running())));
        Poll::Pending
    })
    .await;
    // It has woken this task already.
    timer.0 = None;
}

pub async fn sleep_ns(duration_ns: u64) {
    sleep_until_ns(clock::now_ns().saturating_add(duration_ns)).await;
}

/// Lets every other task that can go on do so first.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        with_loop(|this| this.slots.ready.push_back(running()));
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_timer_that_ends_a_wait_costs_no_other_system_call() {
        let works = super::super::uring::probe().is_ok();
        for backend in [Backend::Epoll].into_iter().chain(works.then_some(Backend::IoUring)) {
            // On a busy machine a time may have passed before the wait for it, but not in each of a hundred tries.
            let waited_each_time = (0..100).any(|_| {
                let calls = Cell::new(0);
                let mut executor = Executor::new(backend).unwrap();
                executor.spawn(async {
                    for _ in 0..20 {
                        sleep_ns(200_000).await;
                    }
                    calls.set(loop_use().system_calls);
                });
                executor.run(|| false).unwrap();
                // A signal may end a wait too early.
                assert!(calls.get() <= 24, "{} calls over {backend:?}", calls.get());
                calls.get() >= 20
            });
            assert!(waited_each_time, "fewer calls than waits over {backend:?}");
        }
    }
}
