//! Things in the order that they come in, each once.

/// Each of some things once, where it comes first. For few of them: each is looked for among all
/// before it.
pub fn each_once<T: PartialEq>(things: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for one in things {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Groups pairs by a key, each key with all that has it.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
