//! Mutation testing of specgap: `mutants --help`.
//!
//! A copy of the source tree is made in which each mutant is a switch that an environment variable
//! turns on. So there is one build for all of them, and a mutant costs only the tests that reach it.

mod compile;
mod find;
mod interval;
mod rooms;
mod tests;
mod weave;

use compile::Tree;
use find::Mutant;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
mutants: which changes of the source does no test notice?

    cargo run --manifest-path scripts/mutants/Cargo.toml -- [OPTIONS]

Run it from the root of the repository. It prints the score of each room and every survivor.

    --sample N        mutants that are drawn from each room; those that compile are tried
                      [default: 80; 0: all of them]
    --seed N          which ones [default: 19]
    --rooms A,B       only these rooms; `named` are those of scripts/mutants/named.txt
    --jobs N          tests that run side by side [default: 1]
    --budget SECONDS  what tests that pass may take for one mutant [default: 150]
    --work FOLDER     the copy, its build, and what was found [default: target/mutants]
    --features NAMES  features of the build [default: none]
    --again           try only what survived last time, with the tests as they are now
    --score           try nothing; print the score of what was found
    --list            try nothing; print the mutants that are drawn
    --tests A,B       only tests whose name holds A or B
";

struct Options {
    sample: usize,
    seed: u64,
    rooms: Option<BTreeSet<String>>,
    jobs: usize,
    budget: f64,
    work: PathBuf,
    features: Option<String>,
    tests: Vec<String>,
    again: bool,
    score: bool,
    list: bool,
}

fn options() -> Fallible<Options> {
    let mut options = Options {
        sample: 80,
        seed: 19,
        rooms: None,
        jobs: 1,
        budget: 150.0,
        work: "target/mutants".into(),
        features: None,
        tests: Vec::new(),
        again: false,
        score: false,
        list: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument}: takes a value"));
        match argument.as_str() {
            "--sample" => options.sample = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--rooms" => options.rooms = Some(value()?.split(',').map(str::to_owned).collect()),
            "--jobs" => options.jobs = value()?.parse()?,
            "--budget" => options.budget = value()?.parse()?,
            "--work" => options.work = value()?.into(),
            "--features" => options.features = Some(value()?),
            "--tests" => options.tests = value()?.split(',').map(str::to_owned).collect(),
            "--again" => options.again = true,
            "--score" => options.score = true,
            "--list" => options.list = true,
            "--help" | "-h" => {
                print!("{HELP}");
                std::process::exit(0);
            }
            other => return Err(format!("{other}: no such option; see --help").into()),
        }
    }
    if let Some(rooms) = &options.rooms
        && let Some(unknown) = rooms
            .iter()
            .find(|room| *room != NAMED && !rooms::NAMES.contains(&room.as_str()))
    {
        let names = rooms::NAMES.join(", ");
        return Err(format!("--rooms {unknown}: one of {names}, {NAMED}").into());
    }
    Ok(options)
}

/// How a mutant fared, by its key.
pub type Outcomes = BTreeMap<String, String>;

fn read_outcomes(path: &Path) -> Outcomes {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(outcome, key)| (key.to_owned(), outcome.to_owned()))
        .collect()
}

/// Mutants that change nothing that could be seen, with the reason: a key, then an indented line.
fn read_equivalent(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with("src/") || line.starts_with("crates/"))
        .map(str::to_owned)
        .collect()
}

fn main() -> Fallible<()> {
    let options = options()?;
    let tree = Tree::new(Path::new("."), &options.work, options.features.clone())?;
    let found_path = options.work.join("outcomes.txt");
    let equivalent = read_equivalent(Path::new("scripts/mutants/equivalent.txt"));

    let sources = tree.sources()?;
    let mut small = BTreeSet::new();
    for source in sources.values() {
        small.extend(find::small_constants(source)?);
    }
    let mut all: Vec<Mutant> = Vec::new();
    for (file, source) in &sources {
        if rooms::of(file).is_some() {
            all.extend(find::mutants(file, source, &small)?);
        }
    }
    let named = find::named(
        &std::fs::read_to_string("scripts/mutants/named.txt")?,
        &sources,
    )?;
    // The order of a room's mutants depends on their keys alone, so that a change elsewhere
    // leaves the sample as it is.
    let mut by_room: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
    for mutant in &all {
        let room = rooms::of(&mutant.file).unwrap_or_default();
        by_room.entry(room).or_default().push(mutant);
    }
    let mut drawn: Vec<&Mutant> = Vec::new();
    let mut sizes = BTreeMap::new();
    for (room, mutants) in &mut by_room {
        if options
            .rooms
            .as_ref()
            .is_some_and(|rooms| !rooms.contains(*room))
        {
            continue;
        }
        sizes.insert(*room, mutants.len());
        mutants.sort_by_key(|mutant| hash(options.seed, &mutant.key));
        let count = match options.sample {
            0 => mutants.len(),
            sample => sample.min(mutants.len()),
        };
        drawn.extend(&mutants[..count]);
    }
    if options
        .rooms
        .as_ref()
        .is_none_or(|rooms| rooms.contains(NAMED))
    {
        sizes.insert(NAMED, named.len());
        drawn.extend(&named);
    }
    drawn.sort_by(|a, b| {
        let place = |mutant: &Mutant| (mutant.span.start, std::cmp::Reverse(mutant.span.end));
        a.file.cmp(&b.file).then(place(a).cmp(&place(b)))
    });
    println!("{} mutants, of which {} are drawn", all.len(), drawn.len());
    let mut outcomes = read_outcomes(&found_path);
    let is_open = |mutant: &&Mutant| match outcomes.get(&mutant.key) {
        None => !options.again,
        Some(outcome) => {
            options.again && !outcome.starts_with("caught") && !equivalent.contains(&mutant.key)
        }
    };
    if options.list {
        drawn.iter().for_each(|mutant| println!("{}", mutant.key));
        return Ok(());
    }
    if !options.score {
        let open: Vec<&Mutant> = drawn.iter().copied().filter(is_open).collect();
        let tried = tree.viable(&sources, open)?;
        println!("{} are tried", tried.len());
        if !tried.is_empty() {
            let programs = tree.build(&sources, &tried)?;
            // Room after room takes its turn, so that what is done when it is stopped is a sample.
            let mut order: Vec<usize> = (0..tried.len()).collect();
            order.sort_by_key(|&place| hash(options.seed, &tried[place].key));
            let mut turns = BTreeMap::new();
            order.sort_by_cached_key(|&place| {
                let turn = turns.entry(room_of(tried[place])).or_insert(0);
                *turn += 1;
                *turn
            });
            let how = tests::How {
                jobs: options.jobs,
                budget: options.budget,
                names: options.tests,
            };
            tests::run(&tree, &programs, &tried, &order, &how, &found_path)?;
        }
        outcomes = read_outcomes(&found_path);
    }
    drawn.retain(|mutant| outcomes.contains_key(&mutant.key));
    score(&drawn, &sizes, &outcomes, &equivalent, options.seed);
    Ok(())
}

/// Stands for a room of the mutants that are listed by hand.
const NAMED: &str = "named";

fn room_of(mutant: &Mutant) -> &str {
    if mutant.key.contains(" named: ") {
        NAMED
    } else {
        rooms::of(&mutant.file).unwrap_or_default()
    }
}

fn score(
    sample: &[&Mutant],
    sizes: &BTreeMap<&str, usize>,
    outcomes: &Outcomes,
    equivalent: &BTreeSet<String>,
    seed: u64,
) {
    println!("\nSurvivors:");
    for mutant in sample {
        let outcome = outcomes
            .get(&mutant.key)
            .map_or("not tried", String::as_str);
        let listed = equivalent.contains(&mutant.key);
        if listed && outcome.starts_with("caught") {
            println!("listed as equivalent, but {outcome}\t{}", mutant.key);
        } else if !listed && !outcome.starts_with("caught") {
            println!("{outcome}\t{}:{}\t{}", mutant.file, mutant.line, mutant.key);
        }
    }
    println!(
        "\nseed {seed}; score: caught of those tried that are not equivalent, and its 95% interval"
    );
    println!("room          mutants  tried  equivalent  caught  survived  score");
    let mut sums = [0; 5];
    for (room, size) in sizes {
        let of_room = sample.iter().filter(|mutant| room_of(mutant) == *room);
        let (mut tried, mut same, mut caught) = (0, 0, 0);
        for mutant in of_room {
            let Some(outcome) = outcomes.get(&mutant.key) else {
                continue;
            };
            tried += 1;
            if outcome.starts_with("caught") {
                caught += 1;
            } else if equivalent.contains(&mutant.key) {
                same += 1;
            }
        }
        let row = [*size, tried, same, caught, tried - same - caught];
        for (sum, entry) in sums.iter_mut().zip(row) {
            *sum += entry;
        }
        line(room, row);
    }
    line("all tried", sums);
}

fn line(name: &str, [size, tried, same, caught, survived]: [usize; 5]) {
    let [low, high] = interval::binomial(caught, tried - same).map(|end| 100.0 * end);
    let share = 100.0 * caught as f64 / ((tried - same).max(1) as f64);
    println!(
        "{name:12}  {size:7}  {tried:5}  {same:10}  {caught:6}  {survived:8}  {share:.1}% ({low:.1} to {high:.1})"
    );
}

/// FNV-1a, whose bits are then mixed: an order that a seed decides.
fn hash(seed: u64, text: &str) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
