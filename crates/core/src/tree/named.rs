//! Topologies by name, and from files.

use super::topology::{DraftTree, MAX_NODES, TopologyError};
#[cfg(feature = "files")]
use specgap_base::typed;

/// The names that [`DraftTree::named`] knows, for messages and help texts.
pub const NAMES: &str = "chain-K, AxB (A children a node, B levels), A-B-C or prefix-A-B-C (A children of \
    the root, B of each of these, ...), spechub-binary-D, eagle-25";

/// EAGLE's static tree of 25 draft tokens: `mc_sim_7b_63` of its public code.
#[rustfmt::skip]
const EAGLE: [&[usize]; 25] = [
    &[0], &[1], &[2], &[3],
    &[0, 0], &[0, 1], &[0, 2], &[1, 0], &[1, 1], &[2, 0], &[2, 1], &[3, 0],
    &[0, 0, 0], &[0, 0, 1], &[0, 0, 2], &[0, 1, 0], &[0, 1, 1], &[0, 2, 0], &[0, 2, 1], &[1, 0, 0],
    &[0, 0, 0, 0], &[0, 0, 0, 1], &[0, 0, 0, 2],
    &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 1],
];

impl DraftTree {
    /// A topology by its name.
    ///
    /// | name | tree |
    /// | --- | --- |
    /// | `chain-K` | K drafts one behind the other |
    /// | `AxB` | A children a node, B levels: A + A^2 + .. + A^B drafts |
    /// | `prefix-A-B-C`, `A-B-C` | A children of the root, B of each of these, C of each of those: SpecTr's prefix trees |
    /// | `spechub-binary-D` | two children a node, D levels: SpecHub's full binary trees, `2xD` |
    /// | `eagle-25` | EAGLE's 25 drafts |
    ///
    /// # Errors
    /// An unknown name; a tree of more than [`MAX_NODES`] nodes.
    ///
    /// # Source
    /// EAGLE, `choices.py`; SpecHub, Table 1; SpecTr, Algorithm 5.
    ///
    /// # Example
    /// ```
    /// use specgap_core::tree::DraftTree;
    /// let tree = DraftTree::named("2x4")?;
    /// assert_eq!((tree.len(), tree.depth()), (30, 4));
    /// assert_eq!(DraftTree::named("prefix-2-1")?.paths(), [vec![0], vec![1], vec![0, 0], vec![1, 0]]);
    /// assert_eq!(DraftTree::named("eagle-25")?.len(), 25);
    /// # Ok::<(), specgap_core::tree::TopologyError>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, TopologyError> {
        let unknown = || TopologyError::Name {
            name: name.to_owned(),
        };
        let number = |text: &str| {
            let plain = !text.starts_with('+') && !text.starts_with('0');
            let number = text.parse::<usize>().ok().filter(|_| plain);
            number.ok_or_else(unknown)
        };
        if name == "eagle-25" {
            return Self::new(EAGLE.iter().map(|path| path.to_vec()).collect());
        }
        if let Some(length) = name.strip_prefix("chain-") {
            return Self::of_widths(1, number(length)?, &|_| 1);
        }
        if let Some(depth) = name.strip_prefix("spechub-binary-") {
            return Self::of_widths(2, number(depth)?, &|_| 2);
        }
        let bare = Some(name)
            .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()) && name.contains('-'));
        if let Some(widths) = name.strip_prefix("prefix-").or(bare) {
            let widths: Vec<usize> = widths.split('-').map(number).collect::<Result<_, _>>()?;
            let most = widths.iter().copied().max().unwrap_or(1);
            return Self::of_widths(most, widths.len(), &|depth| widths[depth]);
        }
        let (width, depth) = name.split_once('x').ok_or_else(unknown)?;
        let (width, depth) = (number(width)?, number(depth)?);
        Self::of_widths(width, depth, &|_| width)
    }

    /// As many children at every node of a depth as `width` says.
    fn of_widths(
        most: usize,
        depth: usize,
        width: &dyn Fn(usize) -> usize,
    ) -> Result<Self, TopologyError> {
        let (mut nodes, mut layer) = (0usize, 1usize);
        for parent in 0..depth {
            layer = layer.saturating_mul(width(parent).min(most));
            nodes = nodes.saturating_add(layer);
            if nodes > MAX_NODES {
                return Err(TopologyError::TooLarge(nodes));
            }
        }
        let mut paths: Vec<Vec<usize>> = Vec::with_capacity(nodes);
        let mut parents = vec![Vec::new()];
        for parent in 0..depth {
            let children: Vec<Vec<usize>> = parents
                .iter()
                .flat_map(|path: &Vec<usize>| {
                    (0..width(parent)).map(move |rank| [path.as_slice(), &[rank]].concat())
                })
                .collect();
            paths.extend(children.iter().cloned());
            parents = children;
        }
        Self::new(paths)
    }

    /// Paths of `length` tokens that part at the root; `prefix-K-1-1` by name.
    ///
    /// # Errors
    /// There are none, or more nodes than [`MAX_NODES`].
    pub fn of_paths(paths: usize, length: usize) -> Result<Self, TopologyError> {
        let width = |depth| if depth == 0 { paths } else { 1 };
        Self::of_widths(paths, length, &width)
    }

    /// EAGLE's list of paths as JSON: `[[0],[1],[0,0]]`.
    ///
    /// # Errors
    /// Anything else, with the entry and what is wrong with it; and as [`Self::new`].
    #[cfg(feature = "files")]
    pub fn from_json(text: &str) -> Result<Self, TopologyError> {
        let (paths, rest): (Vec<Vec<usize>>, _) = typed::json(text)
            .map_err(|refused| TopologyError::Json(refused.path, refused.error.to_string()))?;
        rest.map_err(|error| TopologyError::Json("end".to_owned(), error.to_string()))?;
        if paths.is_empty() {
            return Err(TopologyError::NoPaths);
        }
        Self::new(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trees() {
        for (name, nodes, depth) in [
            ("chain-5", 5, 5),
            ("1x5", 5, 5),
            ("4x3", 84, 3),
            ("spechub-binary-5", 62, 5),
            ("prefix-3-2-1", 15, 3),
            ("3-2-1", 15, 3),
            ("eagle-25", 25, 5),
        ] {
            let tree = DraftTree::named(name).unwrap();
            assert_eq!((tree.len(), tree.depth()), (nodes, depth), "{name}");
        }
        assert_eq!(DraftTree::named("1x5"), DraftTree::named("chain-5"));
        assert_eq!(DraftTree::named("prefix-2-2-2"), DraftTree::named("2x3"));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for name in [
            "", "x", "2x", "x2", "0x3", "2x0", "+2x3", "chain-", "chain--1", "prefix-", "tree",
        ] {
            let error = DraftTree::named(name).unwrap_err();
            assert!(
                matches!(error, TopologyError::Name { .. }),
                "{name}: {error}"
            );
            assert!(error.to_string().contains("eagle-25"));
        }
        for name in ["99x99", "chain-99999", "prefix-70-70"] {
            let error = DraftTree::named(name).unwrap_err();
            assert!(
                matches!(error, TopologyError::TooLarge(..)),
                "{name}: {error}"
            );
        }
        for (text, words) in [
            ("[[0],[-1]]", "[1][0]"),
            ("[[0],[0,0.5]]", "[1][1]"),
            ("{\"a\":1}", "list of paths"),
            ("[[0]] x", "list of paths"),
            ("[]", "no path"),
            ("[[]]", "path 0 is empty"),
            ("[[0],[0]]", "listed twice"),
            ("[[1]]", "needs [0]"),
            ("[[0],[1,0]]", "needs [1]"),
        ] {
            let error = DraftTree::from_json(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!(DraftTree::from_json("[[0],[1],[0,0]]").unwrap().len(), 3);
    }
}
