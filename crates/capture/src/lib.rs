//! Two models run by ONNX Runtime: rows logged, texts decoded live.
//!
//! Only this member knows ONNX Runtime and tokenizers; everything else builds without.

pub mod capture;
