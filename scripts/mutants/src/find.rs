//! The mutants of a source file: what is changed, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// How a mutant stands in the text.
#[derive(Clone, Debug)]
pub enum Form {
    /// The expression becomes this text.
    Replace(String),
    /// The function returns this text before it does anything.
    Return(String),
    /// The block of an `if`, which leaves the function or the loop, is not entered.
    NotEntered,
}

/// One change of the source.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub file: String,
    pub line: usize,
    /// Bytes of the file; empty for `Form::Return`.
    pub span: Range<usize>,
    pub form: Form,
    /// Names it whatever lines are added elsewhere: file, function, change, which of equal ones.
    pub key: String,
}

/// Names of `f64` constants that are written as a small number.
pub fn small_constants(source: &str) -> Result<BTreeSet<String>, syn::Error> {
    struct Constants(BTreeSet<String>);
    impl Visit<'_> for Constants {
        fn visit_item_const(&mut self, item: &syn::ItemConst) {
            let text = |span: proc_macro2::Span| span.source_text().unwrap_or_default();
            let value = text(item.expr.span());
            if text(item.ty.span()) == "f64" && (value.contains("e-") || value.contains("EPSILON"))
            {
                self.0.insert(item.ident.to_string());
            }
        }
    }
    let mut constants = Constants(BTreeSet::new());
    constants.visit_file(&syn::parse_file(source)?);
    Ok(constants.0)
}

/// All mutants of a file, in the order of the text.
pub fn mutants(
    file: &str,
    source: &str,
    small: &BTreeSet<String>,
) -> Result<Vec<Mutant>, syn::Error> {
    let mut finder = Finder {
        file,
        source,
        small,
        within: Vec::new(),
        equal: BTreeMap::new(),
        found: Vec::new(),
    };
    finder.visit_file(&syn::parse_file(source)?);
    finder
        .found
        .sort_by_key(|mutant| (mutant.span.start, std::cmp::Reverse(mutant.span.end)));
    Ok(finder.found)
}

/// The mutants of a list that is written by hand, as its head says.
pub fn named(
    list: &str,
    sources: &BTreeMap<String, String>,
) -> Result<Vec<Mutant>, Box<dyn std::error::Error>> {
    let mut found = Vec::new();
    let (mut file, mut old) = ("", None);
    for (number, line) in list.lines().enumerate() {
        let wrong = |what: &str| format!("scripts/mutants/named.txt:{}: {what}", number + 1);
        if line.contains("src/") && !line.starts_with(['-', '+', '#']) {
            file = line;
        } else if let Some(text) = line.strip_prefix("- ") {
            old = Some(text.replace("\\n", "\n"));
        } else if let Some(new) = line.strip_prefix("+ ") {
            let source = sources.get(file).ok_or_else(|| wrong("no such file"))?;
            let old = old.take().ok_or_else(|| wrong("what becomes of what?"))?;
            let parts: Vec<&str> = [
                old.split_once("[[").ok_or_else(|| wrong("no [["))?.0,
                old.split_once("[[")
                    .and_then(|(_, rest)| rest.rsplit_once("]]"))
                    .ok_or_else(|| wrong("no ]]"))?
                    .0,
                old.rsplit_once("]]").ok_or_else(|| wrong("no ]]"))?.1,
            ]
            .to_vec();
            let whole = parts.concat();
            let mut places = source.match_indices(&whole);
            let (Some((at, _)), None) = (places.next(), places.next()) else {
                return Err(wrong("this text does not stand in its file exactly once").into());
            };
            let start = at + parts[0].len();
            let span = start..start + parts[1].len();
            found.push(Mutant {
                file: file.to_owned(),
                line: source[..start].matches('\n').count() + 1,
                span,
                form: Form::Replace(new.to_owned()),
                key: format!(
                    "{file} named: in `{}` `{}` becomes `{new}`",
                    one_line(&whole),
                    one_line(parts[1])
                ),
            });
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err(wrong("names no file below src/, and starts with neither - nor +").into());
        }
    }
    Ok(found)
}

struct Finder<'a> {
    file: &'a str,
    source: &'a str,
    small: &'a BTreeSet<String>,
    within: Vec<String>,
    equal: BTreeMap<String, usize>,
    found: Vec<Mutant>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.span().source_text().unwrap_or_default();
        text.contains("cfg(test)") || text.contains("[test]") || text.contains("cfg(doc")
    })
}

fn has_let(expression: &syn::Expr) -> bool {
    struct Lets(bool);
    impl Visit<'_> for Lets {
        fn visit_expr_let(&mut self, _: &syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
        fn visit_block(&mut self, _: &syn::Block) {}
    }
    let mut lets = Lets(false);
    lets.visit_expr(expression);
    lets.0
}

/// Whether a block ends by leaving the function or the loop.
fn leaves(block: &syn::Block) -> bool {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(last, _)) => matches!(
            last,
            syn::Expr::Return(_) | syn::Expr::Break(_) | syn::Expr::Continue(_)
        ),
        _ => false,
    }
}

fn one_line(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > 100 {
        let head: String = text.chars().take(70).collect();
        let tail: Vec<char> = text.chars().rev().take(26).collect();
        format!("{head} .. {}", tail.iter().rev().collect::<String>())
    } else {
        text
    }
}

impl Finder<'_> {
    fn text(&self, item: &impl Spanned) -> &str {
        &self.source[item.span().byte_range()]
    }

    fn add(&mut self, line: usize, span: Range<usize>, form: Form) {
        let change = match &form {
            Form::Replace(new) => {
                format!(
                    "`{}` becomes `{}`",
                    one_line(&self.source[span.clone()]),
                    one_line(new)
                )
            }
            Form::Return(value) => format!("returns `{value}` at once"),
            Form::NotEntered => {
                format!("does not enter `{}`", one_line(&self.source[span.clone()]))
            }
        };
        let key = format!("{} {}: {change}", self.file, self.within.join("::"));
        let count = self.equal.entry(key.clone()).or_insert(0);
        *count += 1;
        let key = if *count > 1 {
            format!("{key} ({count})")
        } else {
            key
        };
        self.found.push(Mutant {
            file: self.file.to_owned(),
            line,
            span,
            form,
            key,
        });
    }

    fn replace(&mut self, old: &impl Spanned, new: String) {
        let span = old.span();
        self.add(span.start().line, span.byte_range(), Form::Replace(new));
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        let values: &[&str] = match &signature.output {
            syn::ReturnType::Default => &[""],
            syn::ReturnType::Type(_, kind) => {
                let kind = self.text(kind);
                match kind {
                    "bool" => &["false", "true"],
                    "f64" | "f32" => &["0.0", "1.0"],
                    "usize" | "u8" | "u16" | "u32" | "u64" | "u128" | "i32" | "i64" => &["0", "1"],
                    _ if kind.starts_with("Result<()") => &["Ok(())"],
                    _ if kind.starts_with("Result<Vec<") => &["Ok(Vec::new())"],
                    _ if kind.starts_with("Result<Option<") => &["Ok(None)"],
                    _ if kind.starts_with("Result<") => &["Ok(Default::default())"],
                    _ if kind.starts_with("Option<") => &["None"],
                    _ if kind.starts_with("Vec<") => &["Vec::new()"],
                    _ if kind.starts_with("impl") || kind.starts_with('&') || kind == "!" => &[],
                    _ => &["Default::default()"],
                }
            }
        };
        let at = block.brace_token.span.open().byte_range().end;
        let line = signature.ident.span().start().line;
        let body = match block.stmts.as_slice() {
            [syn::Stmt::Expr(only, None)] => self.text(only).to_owned(),
            _ => String::new(),
        };
        for value in values.iter().filter(|value| **value != body) {
            self.add(line, at..at, Form::Return((*value).to_owned()));
        }
    }

    /// Turns a condition round where no comparison inside will be.
    fn condition(&mut self, condition: &syn::Expr) {
        let plain = matches!(
            condition,
            syn::Expr::MethodCall(_)
                | syn::Expr::Call(_)
                | syn::Expr::Path(_)
                | syn::Expr::Field(_)
                | syn::Expr::Index(_)
                | syn::Expr::Macro(_)
        );
        if plain && !has_let(condition) {
            let new = format!("!({})", self.text(condition));
            self.replace(condition, new);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // None of these can hold a switch: they are computed by the compiler, or are no expressions.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let debug = item.trait_.as_ref().is_some_and(|(_, name, _)| {
            name.segments
                .last()
                .is_some_and(|last| last.ident == "Debug")
        });
        if is_test(&item.attrs) || debug {
            return;
        }
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.within.push(owner.unwrap_or_default());
        visit::visit_item_impl(self, item);
        self.within.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.within.push(item.sig.ident.to_string());
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        self.within.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.within.push(item.sig.ident.to_string());
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
        self.within.pop();
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        self.within.push(item.sig.ident.to_string());
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
        self.within.pop();
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        use syn::BinOp::*;
        let others: &[&str] = match binary.op {
            Add(_) => &["-"],
            Sub(_) => &["+"],
            Mul(_) => &["/"],
            Div(_) => &["*"],
            Rem(_) => &["/"],
            Lt(_) => &["<=", ">="],
            Le(_) => &["<", ">"],
            Gt(_) => &[">=", "<="],
            Ge(_) => &[">", "<"],
            Eq(_) => &["!="],
            Ne(_) => &["=="],
            And(_) => &["||"],
            Or(_) => &["&&"],
            BitAnd(_) => &["|"],
            BitOr(_) => &["&"],
            BitXor(_) => &["|"],
            Shl(_) => &[">>"],
            Shr(_) => &["<<"],
            AddAssign(_) => &["-="],
            SubAssign(_) => &["+="],
            MulAssign(_) => &["/="],
            DivAssign(_) => &["*="],
            BitOrAssign(_) => &["&="],
            BitAndAssign(_) => &["|="],
            _ => &[],
        };
        let lets = matches!(binary.op, And(_) | Or(_))
            && (has_let(&binary.left) || has_let(&binary.right));
        if !lets {
            let assigns = matches!(
                binary.op,
                AddAssign(_)
                    | SubAssign(_)
                    | MulAssign(_)
                    | DivAssign(_)
                    | BitOrAssign(_)
                    | BitAndAssign(_)
            );
            let (left, right) = (
                self.text(&binary.left).to_owned(),
                self.text(&binary.right).to_owned(),
            );
            for other in others {
                let new = if assigns {
                    format!("{left} {other} {right}")
                } else {
                    format!("({left}) {other} {right}")
                };
                self.replace(binary, new);
            }
            // A term is dropped. `n + 1` without the 1 is made by the mutant of the literal.
            if matches!(binary.op, Add(_) | Sub(_)) && !matches!(right.as_str(), "1" | "0") {
                self.replace(binary, left);
            } else if matches!(binary.op, AddAssign(_)) && right != "1" {
                self.replace(binary, "()".to_owned());
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, syn::UnOp::Not(_) | syn::UnOp::Neg(_)) {
            let new = self.text(&unary.expr).to_owned();
            self.replace(unary, new);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        let new = match &literal.lit {
            syn::Lit::Int(int) => match int.base10_digits() {
                "0" => Some(format!("1{}", int.suffix())),
                "1" => Some(format!("0{}", int.suffix())),
                _ => None,
            },
            syn::Lit::Float(float) => match float.base10_parse::<f64>() {
                Ok(0.0) => Some(format!("1.0{}", float.suffix())),
                Ok(value) if value == 1.0 || value <= 1e-9 => {
                    Some(format!("0.0{}", float.suffix()))
                }
                _ => None,
            },
            syn::Lit::Bool(value) => Some((!value.value).to_string()),
            _ => None,
        };
        if let Some(new) = new {
            self.replace(literal, new);
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let text = self.text(path);
        let last = text.rsplit("::").next().unwrap_or_default();
        if text == "f64::EPSILON" || self.small.contains(last) {
            self.replace(path, "0.0".to_owned());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let other = match (call.method.to_string().as_str(), call.args.len()) {
            ("min", 1) => Some("max"),
            ("max", 1) => Some("min"),
            ("min_by", 1) => Some("max_by"),
            ("max_by", 1) => Some("min_by"),
            ("floor", 0) => Some("ceil"),
            ("ceil", 0) => Some("floor"),
            ("next_up", 0) => Some("next_down"),
            ("next_down", 0) => Some("next_up"),
            ("lower", 0) => Some("upper"),
            ("upper", 0) => Some("lower"),
            ("first", 0) => Some("last"),
            ("last", 0) => Some("first"),
            ("any", 1) => Some("all"),
            ("all", 1) => Some("any"),
            ("is_some", 0) => Some("is_none"),
            ("is_none", 0) => Some("is_some"),
            ("is_ok", 0) => Some("is_err"),
            ("is_err", 0) => Some("is_ok"),
            ("abs", 0) => Some(""),
            _ => None,
        };
        if let Some(other) = other {
            let (whole, name) = (call.span().byte_range(), call.method.span().byte_range());
            let new = if other.is_empty() {
                self.text(&call.receiver).to_owned()
            } else {
                format!(
                    "{}{other}{}",
                    &self.source[whole.start..name.start],
                    &self.source[name.end..whole.end]
                )
            };
            self.replace(call, new);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.condition(&branch.cond);
        if branch.else_branch.is_none() && leaves(&branch.then_branch) {
            self.add(
                branch.if_token.span.start().line,
                branch.then_branch.span().byte_range(),
                Form::NotEntered,
            );
        }
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_while(&mut self, circuit: &'ast syn::ExprWhile) {
        self.condition(&circuit.cond);
        visit::visit_expr_while(self, circuit);
    }
}
