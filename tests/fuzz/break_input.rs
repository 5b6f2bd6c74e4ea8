//! Inputs that are nearly right.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const WORDS: [&[u8]; 24] = [
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"-1",
    b"0",
    b"1e308",
    b"-1e-320",
    b"1e999",
    b"NaN",
    b"18446744073709551616",
    b"9223372036854775807",
    b"4294967296",
    b"\"1/0\"",
    b"\"1/3\"",
    b"[[]]",
    b"\"\\ud800\"",
    b"\xff\xfe",
    b"\x00",
    b"\r\n",
    b",",
    b"[[[[[[[[[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
];

/// A good file, which is broken.
pub struct Seed {
    bytes: Vec<u8>,
    /// What is in it, if it is JSON; parsed once, as inputs are many.
    value: Option<Value>,
}

impl Seed {
    pub fn new(bytes: Vec<u8>) -> Self {
        let value = serde_json::from_slice(&bytes).ok();
        Self { bytes, value }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A few cuts, repetitions, flips and foreign words; `other` is spliced in now and then.
pub fn bytes(rng: &mut ChaCha8Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..[1, 1, 1, 2, 4][rng.random_range(0..5)] {
        let (a, b) = (
            rng.random_range(0..=data.len()),
            rng.random_range(0..=data.len()),
        );
        let (at, end) = (a.min(b), a.max(b));
        match rng.random_range(0..8) {
            0 => {
                let most = [1, 8, 100, usize::MAX][rng.random_range(0..4)];
                data.drain(at..end.min(at.saturating_add(most)));
            }
            1 => {
                let piece = data[at..end.min(at + 200)].to_vec();
                data.splice(at..at, piece);
            }
            2 if at < data.len() => data[at] ^= 1 << rng.random_range(0..8),
            3 => {
                let word = WORDS[rng.random_range(0..WORDS.len())];
                data.splice(at..at, word.iter().copied());
            }
            4 if at < data.len() => {
                let end = data.len().min(at + 8);
                rng.fill(&mut data[at..end]);
            }
            5 => {
                // A digit becomes a number.
                let from = rng.random_range(0..=data.len());
                let digit = data[from..].iter().position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    let word = WORDS[5 + rng.random_range(0..9)];
                    let place = from + digit;
                    data.splice(place..=place, word.iter().copied());
                }
            }
            6 if !other.is_empty() => {
                let start = rng.random_range(0..other.len());
                let length = rng.random_range(0..=(other.len() - start).min(400));
                data.splice(at..at, other[start..start + length].iter().copied());
            }
            _ => data.truncate(end),
        }
    }
    data
}

/// One or two values of a JSON text replaced, dropped, doubled or renamed; else bytes.
pub fn json(rng: &mut ChaCha8Rng, seed: &Seed) -> Vec<u8> {
    let (Some(value), false) = (&seed.value, rng.random_bool(0.3)) else {
        return bytes(rng, &seed.bytes, b"");
    };
    let mut value = value.clone();
    for _ in 0..rng.random_range(1..3) {
        let inner = count(&value);
        if inner == 0 {
            break;
        }
        let mut place = rng.random_range(0..inner);
        change(&mut value, &mut place, rng);
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

/// How many values are inside.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(all) => all.iter().map(|one| 1 + count(one)).sum(),
        Value::Object(all) => all.values().map(|one| 1 + count(one)).sum(),
        _ => 0,
    }
}

fn strange(rng: &mut ChaCha8Rng) -> Value {
    let all = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(2),
        json!(7),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(4_294_967_296u64),
        json!(1e308),
        json!(5e-324),
        json!(-0.5),
        json!(0.1),
        json!(1.0),
        json!(""),
        json!("x"),
        json!("1/3"),
        json!("0"),
        json!("1/0"),
        json!([]),
        json!({}),
        json!([[0]]),
        json!([0]),
        json!([0, 0]),
    ];
    all[rng.random_range(0..all.len())].clone()
}

fn change(value: &mut Value, place: &mut usize, rng: &mut ChaCha8Rng) -> bool {
    match value {
        Value::Array(all) => {
            for index in 0..all.len() {
                if *place == 0 {
                    match rng.random_range(0..4) {
                        0 => drop(all.remove(index)),
                        1 => all.insert(index, all[index].clone()),
                        2 => {
                            let other = rng.random_range(0..all.len());
                            all.swap(index, other);
                        }
                        _ => all[index] = strange(rng),
                    }
                    return true;
                }
                *place -= 1;
                if change(&mut all[index], place, rng) {
                    return true;
                }
            }
        }
        Value::Object(all) => {
            let keys: Vec<String> = all.keys().cloned().collect();
            for key in keys {
                if *place == 0 {
                    let old = all.remove(&key).unwrap_or_default();
                    match rng.random_range(0..3) {
                        0 => {}
                        1 => {
                            all.insert(format!("{key}x"), old);
                        }
                        _ => {
                            all.insert(key, strange(rng));
                        }
                    }
                    return true;
                }
                *place -= 1;
                if all
                    .get_mut(&key)
                    .is_some_and(|inner| change(inner, place, rng))
                {
                    return true;
                }
            }
        }
        _ => {}
    }
    false
}
