//! Microsoft's ONNX Runtime: finding it, loading it, and which device it runs on.

use super::CaptureError;
use ort::environment::{Environment, GlobalThreadPoolOptions};
use ort::ep;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Environment variables that say where the library is, in this order.
pub const LIBRARY_VARIABLES: [&str; 2] = ["SPECGAP_ONNXRUNTIME", "ORT_DYLIB_PATH"];

/// Which device is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Device {
    /// CUDA if it can be had, else the CPU; which one it was is always said.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// CUDA, or an error.
    Cuda,
}

/// The device that a model runs on, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The device in use.
    pub device: Placed,
    /// Why not CUDA, where it was wanted and not to be had.
    pub refused: Option<String>,
    /// Graph nodes by the execution provider that ran them, counted by the
    /// runtime's own profiler in a first run. Empty if the profile cannot be read.
    pub nodes: BTreeMap<String, usize>,
}

impl Placement {
    /// Returns what the profile bears out: a provider that is registered and runs no node is not in use.
    /// An error where it is the device that was asked for, by name.
    pub(super) fn believed(mut self, asked: Device, graph: &Path) -> Result<Self, CaptureError> {
        let unused = self.device == Placed::Cuda
            && !self.nodes.is_empty()
            && !self.nodes.contains_key(Placed::Cuda.provider());
        if !unused {
            return Ok(self);
        }
        let message = format!("no node of {} ran on it", graph.display());
        if asked == Device::Cuda {
            return Err(CaptureError::Device(message));
        }
        self.device = Placed::Cpu;
        self.refused = Some(message);
        Ok(self)
    }
}

/// A device in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The CPU.
    Cpu,
    /// A CUDA device.
    Cuda,
}

impl Placed {
    /// The runtime's name for its provider.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Cpu => "CPUExecutionProvider",
            Self::Cuda => "CUDAExecutionProvider",
        }
    }
}

/// The loaded library, with one pool of threads for all models. A process can
/// hold one.
#[derive(Debug)]
pub struct Runtime {
    environment: Environment,
    library: PathBuf,
    version: String,
}

/// What the process has loaded; the library cannot be unloaded.
static LOADED: Mutex<Option<(Environment, PathBuf, usize)>> = Mutex::new(None);

impl Runtime {
    /// Loads the library from `explicit`, else from where
    /// [`LIBRARY_VARIABLES`] say, else from where the system finds
    /// `libonnxruntime`. A path may be the file, or a folder that holds it.
    /// `threads` is the number of threads a graph runs on; 0 takes the
    /// runtime's choice, one a physical core.
    ///
    /// # Errors
    ///
    /// [`CaptureError::RuntimeMissing`] lists what was tried and how to get the
    /// library. [`CaptureError::Runtime`] if one was loaded already from
    /// elsewhere or with another number of threads.
    pub fn load(explicit: Option<&Path>, threads: usize) -> Result<Self, CaptureError> {
        let library = find_library(explicit)?;
        let mut loaded = match LOADED.lock() {
            Ok(loaded) => loaded,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some((environment, path, its_threads)) = loaded.as_ref() {
            if *path != library || *its_threads != threads {
                return Err(CaptureError::Runtime(format!(
                    "{} is loaded already, with {its_threads} threads; a process can load one library once",
                    path.display()
                )));
            }
            return Ok(Self::new(environment.clone(), library));
        }
        let missing = |reason: String| CaptureError::RuntimeMissing {
            tried: vec![(library.display().to_string(), reason)],
        };
        let options = contained(|| {
            ort::init_from(&library).map_err(|error| missing(error.to_string()))?;
            // Also checks that the library speaks a version that this program does.
            let mut options = GlobalThreadPoolOptions::default();
            if threads > 0 {
                options = options.with_intra_threads(threads).map_err(failed)?;
            }
            Ok(options)
        })
        .unwrap_or_else(|panic| Err(missing(panic)))?;
        let environment = ort::init()
            .with_name("specgap")
            .with_telemetry(false)
            .with_global_thread_pool(options)
            .build()
            .map_err(failed)?;
        environment.set_log_level(LogLevel::Error);
        *loaded = Some((environment.clone(), library.clone(), threads));
        Ok(Self::new(environment, library))
    }

    fn new(environment: Environment, library: PathBuf) -> Self {
        let version = version_of(&library, ort::info());
        Self {
            environment,
            library,
            version,
        }
    }

    /// The file that was loaded.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The library's version, as far as it tells, and the commit it was built from.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Opens a graph on a device. The session is profiled until its profile is
    /// taken, into `profile`.
    pub(super) fn open(
        &self,
        graph: &Path,
        device: Device,
        profile: &Path,
    ) -> Result<(Session, Placed, Option<String>), CaptureError> {
        let cuda = || self.commit(graph, Placed::Cuda, profile);
        let cpu = || self.commit(graph, Placed::Cpu, profile);
        let refused = |message| CaptureError::Model(graph.to_owned(), message);
        match device {
            Device::Cpu => Ok((cpu().map_err(refused)?, Placed::Cpu, None)),
            Device::Cuda => match cuda() {
                Ok(session) => Ok((session, Placed::Cuda, None)),
                // A graph that the CPU cannot open either is to blame itself.
                Err(message) => Err(match cpu() {
                    Ok(_) => CaptureError::Device(message),
                    Err(message) => refused(message),
                }),
            },
            Device::Auto => match cuda() {
                Ok(session) => Ok((session, Placed::Cuda, None)),
                Err(why) => Ok((cpu().map_err(refused)?, Placed::Cpu, Some(why))),
            },
        }
    }

    fn commit(&self, graph: &Path, placed: Placed, profile: &Path) -> Result<Session, String> {
        let provider = match placed {
            Placed::Cpu => ep::CPU::default().with_arena_allocator(true).build(),
            // Of ONNX Runtime's own accord products are rounded to TF32, which moves rows by
            // a hundred times what the order of sums does.
            Placed::Cuda => ep::CUDA::default().with_tf32(false).build(),
        };
        // What a refused provider or graph has to say is in the error as well.
        self.environment.set_log_level(LogLevel::Fatal);
        let build = || -> ort::Result<Session> {
            let session = SessionBuilder::new(&self.environment)?
                .with_execution_providers([provider.error_on_failure()])?
                .with_optimization_level(GraphOptimizationLevel::All)?
                .with_profiling(profile)?
                .commit_from_file(graph)?;
            Ok(session)
        };
        let session = contained(|| build().map_err(|error| one_line(&error.to_string())));
        self.environment.set_log_level(LogLevel::Error);
        session.unwrap_or_else(Err)
    }
}

fn failed(error: ort::Error) -> CaptureError {
    CaptureError::Runtime(one_line(&error.to_string()))
}

/// Runs third-party code that panics on some inputs, and returns what it says.
pub(super) fn contained<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    specgap_base::panics::quiet_panics(|| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            one_line(text.unwrap_or("it cannot be used"))
        })
    })
}

/// A message of the runtime, without line breaks and without its end.
pub(super) fn one_line(message: &str) -> String {
    let words: Vec<_> = message.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ' ']).to_owned()
}

/// The version in the library's file name, links followed, and the commit in its
/// build description: the library tells its version in no other way.
fn version_of(library: &Path, info: &str) -> String {
    let file = std::fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let version: Vec<_> = name.split('.').filter(digits).collect();
    let commit = info
        .split([' ', ','])
        .find_map(|word| word.strip_prefix("git-commit-id="));
    match (version.as_slice(), commit) {
        ([], None) => one_line(info),
        ([], Some(commit)) => format!("commit {commit}"),
        (version, None) => version.join("."),
        (version, Some(commit)) => format!("{} (commit {commit})", version.join(".")),
    }
}

/// Returns where the library is, by flag, by environment, or by name for the system to find.
fn find_library(explicit: Option<&Path>) -> Result<PathBuf, CaptureError> {
    let named = explicit
        .map(|path| ("⟨onnxruntime⟩", path.to_owned()))
        .or_else(|| {
            LIBRARY_VARIABLES.into_iter().find_map(|name| {
                let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
                Some((name, PathBuf::from(value)))
            })
        });
    let Some((by, path)) = named else {
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        return Ok(PathBuf::from(format!("{prefix}onnxruntime{suffix}")));
    };
    let missing = |reason: &str| CaptureError::RuntimeMissing {
        tried: vec![(format!("{by} {}", path.display()), reason.to_owned())],
    };
    if path.is_dir() {
        return library_in(&path).ok_or_else(|| missing("the folder holds no onnxruntime library"));
    }
    if !path.exists() {
        return Err(missing("no such file"));
    }
    // The loader would look for a bare name elsewhere.
    std::path::absolute(&path).map_err(|error| missing(&error.to_string()))
}

/// The library in a folder: its own, or that of the Python package in it.
fn library_in(folder: &Path) -> Option<PathBuf> {
    [
        folder.to_owned(),
        folder.join("capi"),
        folder.join("onnxruntime/capi"),
    ]
    .iter()
    .filter_map(|folder| std::fs::read_dir(folder).ok())
    .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
    .filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_prefix("lib").unwrap_or(&name);
        let rest = stem.strip_prefix("onnxruntime").unwrap_or_default();
        [".so", ".dylib", ".dll"]
            .iter()
            .any(|end| rest.starts_with(end))
            || rest.starts_with('.') && rest.ends_with(".dylib")
    })
    .max()
    .and_then(|path| std::path::absolute(path).ok())
}

/// Counts graph nodes by provider in a profile of the runtime: a list of events,
/// of which those of nodes name the provider.
pub(super) fn nodes_by_provider(profile: &[u8]) -> BTreeMap<String, usize> {
    let events: Vec<serde_json::Value> = serde_json::from_slice(profile).unwrap_or_default();
    let mut nodes = std::collections::BTreeSet::new();
    for event in &events {
        if let (Some(provider), Some(name)) =
            (event["args"]["provider"].as_str(), event["name"].as_str())
        {
            nodes.insert((provider, name));
        }
    }
    let mut counts = BTreeMap::new();
    for (provider, _) in nodes {
        *counts.entry(provider.to_owned()).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_a_folder_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(library_in(folder.path()), None);
        std::fs::write(folder.path().join("libonnxruntime_providers_shared.so"), "").unwrap();
        assert_eq!(library_in(folder.path()), None);
        let capi = folder.path().join("onnxruntime").join("capi");
        std::fs::create_dir_all(&capi).unwrap();
        for name in [
            "libonnxruntime.so.1.31.1",
            "libonnxruntime.1.31.1.dylib",
            "onnxruntime.dll",
        ] {
            let path = capi.join(name);
            std::fs::write(&path, "").unwrap();
            assert_eq!(library_in(folder.path()), Some(path.clone()), "{name}");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn providers_are_counted_once_a_node() {
        let profile = br#"[
            {"cat":"Session","name":"model_run","args":{}},
            {"cat":"Node","name":"a_kernel_time","args":{"provider":"CPUExecutionProvider"}},
            {"cat":"Node","name":"a_kernel_time","args":{"provider":"CPUExecutionProvider"}},
            {"cat":"Node","name":"b_kernel_time","args":{"provider":"CUDAExecutionProvider"}},
            {"cat":"Node","name":"b_fence_before","args":{"op_name":"MatMul"}}
        ]"#;
        let counts = nodes_by_provider(profile);
        assert_eq!(counts["CPUExecutionProvider"], 1);
        assert_eq!(counts["CUDAExecutionProvider"], 1);
        assert!(nodes_by_provider(b"not json").is_empty());
    }

    #[test]
    fn a_device_that_ran_nothing_is_not_in_use() {
        let placed = |nodes: &[(&str, usize)]| Placement {
            device: Placed::Cuda,
            refused: None,
            nodes: (nodes.iter())
                .map(|&(name, count)| (name.to_owned(), count))
                .collect(),
        };
        let graph = Path::new("draft.onnx");
        let (cpu, cuda) = ("CPUExecutionProvider", "CUDAExecutionProvider");
        // The nodes that compute shapes stay on the CPU; a profile that cannot be read says nothing.
        for real in [placed(&[(cpu, 9), (cuda, 90)]), placed(&[])] {
            for asked in [Device::Auto, Device::Cuda] {
                assert_eq!(real.clone().believed(asked, graph).unwrap(), real);
            }
        }
        let fallen_back = placed(&[(cpu, 99)]).believed(Device::Auto, graph).unwrap();
        assert_eq!(fallen_back.device, Placed::Cpu);
        let why = "no node of draft.onnx ran on it";
        assert_eq!(fallen_back.refused.as_deref(), Some(why));
        let error = placed(&[(cpu, 99)])
            .believed(Device::Cuda, graph)
            .unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().contains("or use ⟨device cpu⟩ or auto"));
        let on_cpu = Placement {
            device: Placed::Cpu,
            ..placed(&[(cpu, 99)])
        };
        assert_eq!(on_cpu.clone().believed(Device::Cpu, graph).unwrap(), on_cpu);
    }

    #[test]
    fn panics_are_contained_and_said() {
        assert_eq!(contained(|| 1), Ok(1));
        let message = contained(|| -> u8 { panic!("the {} file", "first") });
        assert_eq!(message, Err("the first file".to_owned()));
    }

    #[test]
    fn the_version_is_read_from_the_file_name_and_the_build_description() {
        let info = "ORT Build Info: git-branch=HEAD, git-commit-id=6af1a93, build type=Release";
        let version = |name| version_of(Path::new(name), info);
        assert_eq!(
            version("lib/libonnxruntime.so.1.31.1"),
            "1.31.1 (commit 6af1a93)"
        );
        assert_eq!(
            version("libonnxruntime.1.31.1.dylib"),
            "1.31.1 (commit 6af1a93)"
        );
        assert_eq!(version("onnxruntime.dll"), "commit 6af1a93");
        assert_eq!(
            version_of(Path::new("a.so"), "private build."),
            "private build"
        );
    }
}
