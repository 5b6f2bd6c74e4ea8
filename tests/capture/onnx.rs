//! Small ONNX graphs, written by hand: protocol buffer messages of onnx.proto.

/// Element types of onnx.proto.
pub const FLOAT: u64 = 1;
pub const INT32: u64 = 6;
const INT64: u64 = 7;
pub const FLOAT16: u64 = 10;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(value.len() as u64),
        value.to_vec(),
    ]
    .concat()
}

fn text(field: u64, value: &str) -> Vec<u8> {
    bytes(field, value.as_bytes())
}

/// An axis: a name, or digits.
fn axis(name: &str) -> Vec<u8> {
    bytes(
        1,
        &name
            .parse()
            .map_or_else(|_| text(2, name), |size| number(1, size)),
    )
}

/// A `ValueInfoProto`: name, element type, axes.
pub fn value(name: &str, element: u64, axes: &[&str]) -> Vec<u8> {
    let shape: Vec<u8> = axes.iter().flat_map(|name| axis(name)).collect();
    let tensor = [number(1, element), bytes(2, &shape)].concat();
    [text(1, name), bytes(2, &bytes(1, &tensor))].concat()
}

pub fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|name| text(1, name)).collect();
    node.extend(text(2, output));
    node.extend(text(3, &format!("{kind}-{output}")));
    node.extend(text(4, kind));
    for (name, integer) in attributes {
        // AttributeProto: name, i, type INT.
        let attribute = [text(1, name), number(3, *integer), number(20, 2)].concat();
        node.extend(bytes(5, &attribute));
    }
    node
}

fn tensor(name: &str, element: u64, sizes: &[u64], raw: &[u8]) -> Vec<u8> {
    let mut tensor: Vec<u8> = sizes.iter().flat_map(|&size| number(1, size)).collect();
    tensor.extend(number(2, element));
    tensor.extend(text(8, name));
    tensor.extend(bytes(9, raw));
    tensor
}

/// A graph in parts, so that a test can break one.
pub struct Graph {
    pub nodes: Vec<Vec<u8>>,
    pub initializers: Vec<Vec<u8>>,
    pub inputs: Vec<Vec<u8>>,
    pub outputs: Vec<Vec<u8>>,
}

impl Graph {
    pub fn model(&self) -> Vec<u8> {
        let mut graph: Vec<u8> = self.nodes.iter().flat_map(|node| bytes(1, node)).collect();
        graph.extend(text(2, "graph"));
        for (field, list) in [
            (5, &self.initializers),
            (11, &self.inputs),
            (12, &self.outputs),
        ] {
            graph.extend(list.iter().flat_map(|item| bytes(field, item)));
        }
        let opset = [text(1, ""), number(2, 17)].concat();
        [number(1, 8), bytes(7, &graph), bytes(8, &opset)].concat()
    }
}

/// The same with a row for each depth, as of a draft that writes a round at once: behind a token
/// `(token + 1) * rows[depth]`.
pub fn model_by_depth(rows: &[&[f32]]) -> Graph {
    let v = rows.first().map_or(0, |row| row.len());
    let mut graph = model(rows.first().copied().unwrap_or_default(), FLOAT);
    let raw: Vec<u8> = (rows.iter().copied().flatten())
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let sizes = [rows.len() as u64, v as u64];
    graph.initializers[0] = tensor("row", FLOAT, &sizes, &raw);
    let axes: Vec<u8> = [2i64, 3]
        .iter()
        .flat_map(|axis| axis.to_le_bytes())
        .collect();
    graph
        .initializers
        .push(tensor("axes_2_3", INT64, &[2], &axes));
    graph.nodes[2] = node("Unsqueeze", &["ids_1", "axes_2_3"], "column", &[]);
    let [depths, size] = sizes.map(|size| size.to_string());
    graph.outputs[0] = value("logits", FLOAT, &["batch", "sequence", &depths, &size]);
    graph
}

/// A model whose logits are `(token + 1) * row`, so that V is `row.len()`; its
/// cache holds the tokens. All floating point is of type `element`.
pub fn model(row: &[f32], element: u64) -> Graph {
    let v = row.len() as u64;
    let size = v.to_string();
    let raw: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
    let integers = |values: &[i64]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    };
    Graph {
        initializers: vec![
            tensor("row", FLOAT, &[v], &raw),
            tensor("one", FLOAT, &[1], &1f32.to_le_bytes()),
            tensor("axis_2", INT64, &[1], &integers(&[2])),
            tensor("axes_1_3", INT64, &[2], &integers(&[1, 3])),
        ],
        nodes: vec![
            node("Cast", &["input_ids"], "ids", &[("to", FLOAT)]),
            node("Add", &["ids", "one"], "ids_1", &[]),
            node("Unsqueeze", &["ids_1", "axis_2"], "column", &[]),
            node("Mul", &["column", "row"], "wide", &[]),
            node("Cast", &["wide"], "logits", &[("to", element)]),
            node("Unsqueeze", &["ids", "axes_1_3"], "step", &[]),
            node("Cast", &["step"], "step_cast", &[("to", element)]),
            node(
                "Concat",
                &["past_key_values.0.key", "step_cast"],
                "present.0.key",
                &[("axis", 2)],
            ),
        ],
        inputs: vec![
            value("input_ids", INT64, &["batch", "sequence"]),
            value("attention_mask", INT64, &["batch", "total"]),
            value(
                "past_key_values.0.key",
                element,
                &["batch", "1", "past", "1"],
            ),
        ],
        outputs: vec![
            value("logits", element, &["batch", "sequence", &size]),
            value("present.0.key", element, &["batch", "1", "total", "1"]),
        ],
    }
}
