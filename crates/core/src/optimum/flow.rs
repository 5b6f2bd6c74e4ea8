//! Maximum flow on merged sets.
//!
//! source -> set A (capacity: its probability) -> tokens of A (uncapacitated)
//! -> sink (capacity p_i). The value is alpha*, the cut is 1 + P(H) - Q(H), and
//! the flow is an optimal plan (SpecHub, App. E, for n = 2; the same for any n).
//!
//! # Algorithm
//! All of every set's mass is always handed to its tokens, so only tokens are
//! nodes: a token that holds more than p_i has excess, one that holds less has
//! room, and mass moves from i to j through a set that contains both and has
//! given some to i. On those V nodes runs push-relabel (first in, first out,
//! exact labels recomputed by breadth-first search every V relabels). The
//! excess that can reach no room is what no verifier of the step can accept.
//!
//! Sets are never nodes and merged edges never stored: memory is one integer an
//! entry of the set lists, and a relabel scans only the sets of one token.

use super::{Capacity, Instance, Optimum, ScaledInstance};
use crate::coupling::{PlanMasses, TransportPlan};
use crate::problem::Problem;
use crate::scheme::SetFamily;
use crate::stop::look;
use num_bigint::BigUint;
use specgap_number::distribution::{Rational, ratio};
use std::collections::VecDeque;

/// A maximum flow: how every set's mass is handed to its tokens.
#[derive(Clone, Debug)]
pub struct Flow<C> {
    /// Mass by entry of the set family's token list; each set's entries sum to
    /// its supply.
    pub given: Vec<C>,
    /// Mass that each token is given.
    pub load: Vec<C>,
    /// Tokens that excess can reach, ascending: the smallest minimiser of P - Q.
    pub subset: Vec<usize>,
    /// Total mass given beyond what the tokens can take, and that of the empty set:
    /// (1 - alpha*) `total`.
    pub excess: BigUint,
    /// How many tokens of sets were looked at on the way: what the search took.
    pub visits: u64,
}

struct Network<'a, C> {
    sets: &'a SetFamily,
    demand: &'a [C],
    given: Vec<C>,
    load: Vec<C>,
    /// Entries of the family by token: (set, entry).
    entries: Vec<(u32, u32)>,
    starts: Vec<usize>,
    visits: u64,
}

/// Sets between two looks at whether the work shall stop.
const LOOK_EACH: usize = 1 << 12;

/// No path to room.
const UNREACHABLE: u32 = u32::MAX;

impl<'a, C: Capacity> Network<'a, C> {
    fn new(instance: &'a Instance<C>) -> Self {
        let (sets, demand) = (&instance.sets, &instance.demand);
        let vocab = demand.len();
        let mut starts = vec![0usize; vocab + 1];
        for &token in sets.tokens() {
            starts[token as usize + 1] += 1;
        }
        for token in 0..vocab {
            starts[token + 1] += starts[token];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0); sets.tokens().len()];
        for set in 0..sets.len() {
            for entry in sets.span(set) {
                let token = sets.tokens()[entry] as usize;
                entries[next[token]] = (set as u32, entry as u32);
                next[token] += 1;
            }
        }
        let mut network = Self {
            sets,
            demand,
            given: vec![C::nil(); sets.tokens().len()],
            load: vec![C::nil(); vocab],
            entries,
            starts,
            visits: 0,
        };
        network.fill(&instance.supply);
        network
    }

    /// Hands out all mass: first to what has room, in token order of the most
    /// room, then the rest to the last of them.
    fn fill(&mut self, supply: &[C]) {
        for (set, mass) in supply.iter().enumerate() {
            if set % LOOK_EACH == 0 {
                look();
            }
            if self.sets.span(set).is_empty() {
                // Nothing is drafted: no token can take this mass.
                continue;
            }
            let mut left = mass.clone();
            let mut last = self.sets.span(set).start;
            for entry in self.sets.span(set) {
                if left.is_nil() {
                    break;
                }
                self.visits += 1;
                let token = self.sets.tokens()[entry] as usize;
                if self.demand[token] > self.load[token] {
                    let mut room = self.demand[token].clone();
                    room.lose(&self.load[token]);
                    let part = room.min(left.clone());
                    self.give(entry, token, &part);
                    left.lose(&part);
                    last = entry;
                }
            }
            if !left.is_nil() {
                let token = self.sets.tokens()[last] as usize;
                self.give(last, token, &left);
            }
        }
    }

    fn give(&mut self, entry: usize, token: usize, mass: &C) {
        self.given[entry].gain(mass);
        self.load[token].gain(mass);
    }

    fn has_excess(&self, token: usize) -> bool {
        self.load[token] > self.demand[token]
    }

    fn of_token(&self, token: usize) -> std::ops::Range<usize> {
        self.starts[token]..self.starts[token + 1]
    }

    /// Exact distances to a token with room, by breadth-first search backwards.
    fn labels(&mut self) -> Vec<u32> {
        let mut label = vec![UNREACHABLE; self.demand.len()];
        let mut seen = vec![false; self.sets.len()];
        let mut queue: VecDeque<usize> = (0..label.len())
            .filter(|&token| self.load[token] < self.demand[token])
            .collect();
        for &token in &queue {
            label[token] = 0;
        }
        while let Some(token) = queue.pop_front() {
            look();
            for index in self.of_token(token) {
                let set = self.entries[index].0 as usize;
                if std::mem::replace(&mut seen[set], true) {
                    continue;
                }
                for entry in self.sets.span(set) {
                    self.visits += 1;
                    let other = self.sets.tokens()[entry] as usize;
                    if label[other] == UNREACHABLE && !self.given[entry].is_nil() {
                        label[other] = label[token] + 1;
                        queue.push_back(other);
                    }
                }
            }
        }
        label
    }

    fn run(&mut self) {
        let vocab = self.demand.len();
        let mut label = self.labels();
        let mut current = self.starts[..vocab].to_vec();
        let mut queued = vec![false; vocab];
        let mut active: VecDeque<usize> = VecDeque::new();
        let mut relabels = 0;
        loop {
            if active.is_empty() {
                // Fresh labels before stopping: none active means done.
                label = self.labels();
                current.copy_from_slice(&self.starts[..vocab]);
                relabels = 0;
                for token in 0..vocab {
                    if self.has_excess(token) && label[token] != UNREACHABLE {
                        active.push_back(token);
                        queued[token] = true;
                    }
                }
                if active.is_empty() {
                    return;
                }
            }
            while let Some(token) = active.pop_front() {
                queued[token] = false;
                self.discharge(token, &mut label, &mut current, &mut relabels, |next| {
                    if !std::mem::replace(&mut queued[next], true) {
                        active.push_back(next);
                    }
                });
                if relabels > vocab {
                    for token in active.drain(..) {
                        queued[token] = false;
                    }
                }
            }
        }
    }

    /// Pushes a token's excess along its admissible sets, raising its label
    /// until the excess is gone or can go nowhere.
    fn discharge(
        &mut self,
        token: usize,
        label: &mut [u32],
        current: &mut [usize],
        relabels: &mut usize,
        mut activate: impl FnMut(usize),
    ) {
        while self.has_excess(token) && label[token] != UNREACHABLE {
            look();
            let end = self.starts[token + 1];
            let mut lowest = UNREACHABLE;
            // After a complete pass from the first set, `lowest` is the relabel.
            let from_start = current[token] == self.starts[token];
            while current[token] < end {
                let (set, entry) = self.entries[current[token]];
                if self.given[entry as usize].is_nil() {
                    current[token] += 1;
                    continue;
                }
                let mut admissible = None;
                for other_entry in self.sets.span(set as usize) {
                    self.visits += 1;
                    let other = self.sets.tokens()[other_entry] as usize;
                    if other == token || label[other] == UNREACHABLE {
                        continue;
                    }
                    if label[other] < label[token] {
                        admissible = Some((other_entry, other));
                        break;
                    }
                    lowest = lowest.min(label[other]);
                }
                let Some((other_entry, other)) = admissible else {
                    current[token] += 1;
                    continue;
                };
                let mut part = self.load[token].clone();
                part.lose(&self.demand[token]);
                let part = part.min(self.given[entry as usize].clone());
                self.given[entry as usize].lose(&part);
                self.load[token].lose(&part);
                self.give(other_entry, other, &part);
                if self.has_excess(other) {
                    activate(other);
                }
                if !self.has_excess(token) {
                    return;
                }
            }
            current[token] = self.starts[token];
            if from_start {
                label[token] = if lowest == UNREACHABLE || lowest as usize >= label.len() {
                    UNREACHABLE
                } else {
                    lowest + 1
                };
                *relabels += 1;
            }
        }
    }

    /// Tokens that excess can reach.
    fn reached(&self) -> Vec<usize> {
        let mut reached: Vec<bool> = (0..self.demand.len())
            .map(|token| self.has_excess(token))
            .collect();
        let mut stack: Vec<usize> = (0..reached.len()).filter(|&token| reached[token]).collect();
        while let Some(token) = stack.pop() {
            for index in self.of_token(token) {
                let (set, entry) = self.entries[index];
                if self.given[entry as usize].is_nil() {
                    continue;
                }
                for &other in self.sets.set(set as usize) {
                    if !std::mem::replace(&mut reached[other as usize], true) {
                        stack.push(other as usize);
                    }
                }
            }
        }
        (0..reached.len()).filter(|&token| reached[token]).collect()
    }
}

/// A maximum flow of an integer instance, exactly.
///
/// # Complexity
/// O(V^2 E) in the worst case for E entries of the set lists; in practice a few
/// passes over the entries. Memory: two integers and 8 bytes an entry.
pub fn maximum_flow<C: Capacity>(instance: &Instance<C>) -> Flow<C> {
    let mut network = Network::new(instance);
    network.run();
    let subset = network.reached();
    let empty = |&(set, _): &(usize, &C)| instance.sets.span(set).is_empty();
    let undrafted = instance.supply.iter().enumerate().filter(empty);
    let mut excess: BigUint = undrafted.map(|(_, mass)| mass.to_big()).sum();
    for token in 0..instance.demand.len() {
        if network.has_excess(token) {
            excess += network.load[token].to_big() - instance.demand[token].to_big();
        }
    }
    Flow {
        given: network.given,
        load: network.load,
        subset,
        excess,
        visits: network.visits,
    }
}

/// A flow in whichever integers its instance has.
#[derive(Clone, Debug)]
pub enum SolvedFlow {
    /// In 128 bits.
    Native(Instance<u128>, Flow<u128>),
    /// In unbounded integers.
    Big(Instance<BigUint>, Flow<BigUint>),
}

impl SolvedFlow {
    /// Solves an instance.
    pub fn of(instance: ScaledInstance) -> Self {
        match instance {
            ScaledInstance::Native(instance) => {
                let flow = maximum_flow(&instance);
                Self::Native(instance, flow)
            }
            ScaledInstance::Big(instance) => {
                let flow = maximum_flow(&instance);
                Self::Big(instance, flow)
            }
        }
    }

    /// The instance that was solved.
    pub fn instance(&self) -> ScaledInstance {
        match self {
            Self::Native(instance, _) => ScaledInstance::Native(instance.clone()),
            Self::Big(instance, _) => ScaledInstance::Big(instance.clone()),
        }
    }

    /// alpha* with its subset: exact where the instance is, enclosed where
    /// capacities were rounded.
    pub fn optimum(&self) -> Optimum {
        let (excess, total, subset, rounding) = match self {
            Self::Native(i, f) => (&f.excess, &i.total, &f.subset, i.rounding),
            Self::Big(i, f) => (&f.excess, &i.total, &f.subset, i.rounding),
        };
        let rate = Rational::from_integer(1.into()) - ratio(excess, total);
        Optimum {
            rate: rounding.known(rate),
            subset: Some(subset.clone()),
            note: None,
        }
    }

    /// The plan of a maximum flow: what each token is given, less what it cannot
    /// take.
    pub fn into_plan(self) -> TransportPlan {
        fn accepted<C: Capacity>(instance: &Instance<C>, flow: Flow<C>) -> Vec<C> {
            let mut over: Vec<C> = flow
                .load
                .iter()
                .zip(&instance.demand)
                .map(|(load, demand)| {
                    let mut over = load.clone();
                    over.lose(&load.clone().min(demand.clone()));
                    over
                })
                .collect();
            let mut given = flow.given;
            for (entry, mass) in given.iter_mut().enumerate() {
                let token = instance.sets.tokens()[entry] as usize;
                let cut = mass.clone().min(over[token].clone());
                mass.lose(&cut);
                over[token].lose(&cut);
            }
            given
        }
        fn plan<C: Capacity>(
            instance: Instance<C>,
            flow: Flow<C>,
            wrap: fn(Vec<C>) -> PlanMasses,
        ) -> TransportPlan {
            TransportPlan {
                accepted: wrap(accepted(&instance, flow)),
                sets: instance.sets,
                total: instance.total,
                rounding: instance.rounding,
            }
        }
        match self {
            Self::Native(instance, flow) => plan(instance, flow, PlanMasses::Native),
            Self::Big(instance, flow) => plan(instance, flow, PlanMasses::Big),
        }
    }
}

/// The most (set, token) pairs for which a plan is solved by flow.
pub const LARGEST_PLAN: f64 = 2.0e6;

/// The same of strata, whose masses have the bits of all rows: a flow over more takes minutes.
pub const LARGEST_PLAN_OF_STRATA: f64 = 4.0e4;

/// Operations on the law of the sets that count as one pair of
/// [`LARGEST_PLAN`].
const OPERATIONS_A_PAIR: f64 = 500.0;

/// Size of the plan of a problem in (set, token) pairs, or what its law costs to
/// derive if that is more.
pub fn plan_size(problem: &Problem) -> f64 {
    let scheme = problem.scheme();
    let pairs = scheme.set_count() * problem.drafts().min(problem.vocab()) as f64;
    pairs.max(scheme.set_law_cost() / OPERATIONS_A_PAIR)
}

/// alpha* of a problem by maximum flow: exactly while
/// [`ScaledInstance::exact_is_affordable`], else on capacities rounded to 2^-120, with the
/// enclosure that follows.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::optimum::flow;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let optimum = flow::solve(&problem).optimum();
/// assert_eq!(format_rational(optimum.rate.rational().unwrap()), "15/16");
/// assert_eq!(optimum.subset.unwrap(), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(problem: &Problem) -> SolvedFlow {
    SolvedFlow::of(if ScaledInstance::exact_is_affordable(problem) {
        ScaledInstance::exact(problem)
    } else {
        ScaledInstance::Native(ScaledInstance::rounded(problem))
    })
}
