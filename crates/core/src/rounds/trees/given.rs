//! One drafted tree that is verified from its leaves, by all that its drafts may have been, in
//! fractions.

use specgap_number::distribution::Rational;
use specgap_number::number::Number;

/// A node of a drafted tree.
#[derive(Clone, Debug, Default)]
pub struct DrawnNode {
    /// Its token; of the root any.
    pub token: u32,
    /// p behind it.
    pub target: Vec<Rational>,
    /// The nodes of its drafts; one twice where two drafts are one node.
    pub drafts: Vec<usize>,
    /// What these may have been, each with its probability.
    pub tuples: Vec<(Vec<u32>, Rational)>,
    /// How many of them are sure. None where they are i.i.d., which are asked from the first on.
    pub sure: Option<usize>,
}

/// An offer at whose end a node may be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeEnd {
    /// Which.
    pub node: usize,
    /// The chance that it is, where none was kept before; it is above 0.
    pub chance: Rational,
    /// The law of the next token then.
    pub law: Vec<Rational>,
}

/// Returns where a round may end that verifies a tree from its leaves, in the order in which it is tried;
/// the root, which is kept for certain, comes last. Passes are at the levels of the root, and below
/// it; each list ends with 0.
///
/// # Formula
/// Drafts of a node are a list of tuples, of which a refusal takes a share each: what can be taken
/// of a draft is summed over them, whatever their law.
///
/// # Complexity
/// All tuples a pass.
pub fn ends_from_leaves(mut nodes: Vec<DrawnNode>, levels: [&[Rational]; 2]) -> Vec<TreeEnd> {
    let mut ends = Vec::new();
    offer(&mut nodes, levels, (0, &Rational::one()), &mut ends);
    ends
}

fn offer(
    nodes: &mut [DrawnNode],
    levels: [&[Rational]; 2],
    (node, weight): (usize, &Rational),
    ends: &mut Vec<TreeEnd>,
) {
    let own = &mut nodes[node];
    let mut owed: Vec<Rational> = own.target.iter().map(|p| p.times(weight)).collect();
    let masses = |node: &DrawnNode| -> Vec<Rational> {
        node.tuples.iter().map(|one| one.1.clone()).collect()
    };
    let all = Rational::total(&masses(own));
    if !all.is_nil() {
        (own.tuples.iter_mut()).for_each(|one| one.1 = one.1.over(&all));
    }
    let (drafts, sure) = (own.drafts.clone(), own.sure);
    let mut slots: Vec<usize> = (sure.unwrap_or(0)..drafts.len()).collect();
    if sure.is_some() {
        slots.reverse();
    }
    for level in levels[usize::from(node > 0)] {
        for &slot in &slots {
            let shares = take(&mut nodes[node], (slot, level), &mut owed);
            let child = drafts[slot];
            let share = &shares[nodes[child].token as usize];
            if !share.is_nil() {
                offer(nodes, levels, (child, share), ends);
            }
        }
    }
    let mut alive = match drafts.is_empty() {
        true => Rational::one(),
        false => Rational::total(&masses(&nodes[node])),
    };
    for &child in drafts.iter().take(sure.unwrap_or(0)) {
        if alive.is_nil() {
            return;
        }
        let owed = &mut owed[nodes[child].token as usize];
        let share = owed.over(&alive).smaller(&Rational::one());
        *owed = owed.minus(&share.times(&alive));
        alive = alive.times(&Rational::one().minus(&share));
        if !share.is_nil() {
            offer(nodes, levels, (child, &share), ends);
        }
    }
    let rest = Rational::total(&owed);
    if !rest.is_nil() && !alive.is_nil() {
        ends.push(TreeEnd {
            node,
            chance: rest.over(&alive),
            law: owed.iter().map(|one| one.over(&rest)).collect(),
        });
    }
}

/// A pass over one draft: by token, the share that is taken of it.
fn take(
    node: &mut DrawnNode,
    (slot, level): (usize, &Rational),
    owed: &mut [Rational],
) -> Vec<Rational> {
    let mut drafted = vec![Rational::zero(); owed.len()];
    for (tuple, mass) in &node.tuples {
        drafted[tuple[slot] as usize].gain(mass);
    }
    let mut shares = vec![Rational::zero(); owed.len()];
    for ((owed, drafted), share) in owed.iter_mut().zip(&drafted).zip(&mut shares) {
        let wanted = owed.minus(&level.times(drafted));
        if drafted.is_nil() || wanted <= Rational::zero() {
            continue;
        }
        let taken = wanted.over(&Rational::one().minus(level)).smaller(drafted);
        *owed = owed.minus(&taken);
        *share = taken.over(drafted);
    }
    for (tuple, mass) in &mut node.tuples {
        *mass = mass.times(&Rational::one().minus(&shares[tuple[slot] as usize]));
    }
    shares
}
