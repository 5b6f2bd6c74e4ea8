// Speculative decoding in llama.cpp with the rules of include/specgap.h: a tree of drafts as sequences, or a chain.
//
//     engine TARGET.gguf DRAFT.gguf OUT [--rule RULE] [--tree 4-2-1] [--tokens 32] [--temperature 1] [--seed 0] [--threads 2]
//
// RULE is plain (no drafts), token, block, carried-block (a chain: --tree 4 is one of four), level-4 (one position:
// four strata), traversal or traversal-4 (strata at every node). Prompts are lines of token ids on standard input.
// Writes what was decoded into OUT: the logits of both models along each text, target.f32 and draft.f32, and a line for
// each token in text.csv. run.py makes a log of these, audits it, and compares tokens per call with what a replay says.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"
#include "specgap.h"

using Row = std::vector<float>;

[[noreturn]] static void stop(const std::string &what) {
    std::fprintf(stderr, "error: %s\n", what.c_str());
    std::exit(2);
}

struct Options {
    std::string target, draft, out, rule = "traversal-4";
    std::vector<int> widths = {4, 2, 1};
    int tokens = 32, threads = 2;
    double temperature = 1.0;
    unsigned long long seed = 0;
    bool chain() const { return rule == "token" || rule == "block" || rule == "carried-block"; }
};

// A drafted node. It is in the sequences of all paths through it: first..first + paths.
struct Node {
    int token, row, depth, first, paths;
};

// A model and the text that its cache holds, in sequence 0; sequences from 1 on are paths of a tree.
struct Model {
    llama_model *model;
    llama_context *context;
    llama_batch batch;
    int paths, vocab, held = 0;

    Model(const std::string &path, const Options &options, int paths_of) : paths(paths_of) {
        model = llama_model_load_from_file(path.c_str(), llama_model_default_params());
        if (!model) stop(path + ": no model; `models/build gguf` makes both");
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 2048;
        params.n_batch = params.n_ubatch = 512;
        params.n_seq_max = 1 + paths;
        params.kv_unified = true; // a node is one cell of all its paths
        params.n_threads = params.n_threads_batch = options.threads;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        context = llama_init_from_model(model, params);
        if (!context) stop(path + ": no context");
        vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
        batch = llama_batch_init(512, 0, 1 + paths);
    }
    ~Model() {
        llama_batch_free(batch);
        llama_free(context);
        llama_model_free(model);
    }
    void add(int token, int position, int first, int count, bool row) {
        const int i = batch.n_tokens++;
        batch.token[i] = token;
        batch.pos[i] = position;
        batch.n_seq_id[i] = count;
        for (int s = 0; s < count; s++) batch.seq_id[i][s] = first + s;
        batch.logits[i] = row;
    }
    void decode() {
        if (llama_decode(context, batch) != 0) stop("llama_decode failed");
    }
    Row logits(int i) { return Row(llama_get_logits_ith(context, i), llama_get_logits_ith(context, i) + vocab); }

    void forget() {
        llama_memory_clear(llama_get_memory(context), true);
        held = 0;
    }
    // Puts what is missing of a text into the cache: the logits behind each of these tokens from `from` on.
    std::vector<Row> read(const std::vector<int> &text, int from) {
        std::vector<Row> rows;
        const int size = (int)text.size();
        while (held < size) {
            const int begin = held;
            batch.n_tokens = 0;
            for (; held < size && batch.n_tokens < 512; held++) add(text[held], held, 0, 1, held >= from);
            decode();
            for (int t = begin; t < held; t++)
                if (t >= from) rows.push_back(logits(t - begin));
        }
        return rows;
    }
    // Lets all paths begin with the text.
    void branch() {
        for (int s = 1; s <= paths; s++) llama_memory_seq_cp(llama_get_memory(context), 0, s, -1, -1);
    }
    // Adds nodes behind the text: the logits behind each.
    std::vector<Row> grow(const std::vector<Node> &nodes, size_t from) {
        std::vector<Row> rows;
        batch.n_tokens = 0;
        for (size_t i = from; i < nodes.size(); i++) add(nodes[i].token, held + nodes[i].depth, nodes[i].first, nodes[i].paths, true);
        if (batch.n_tokens == 0) return rows;
        decode();
        for (int i = 0; i < batch.n_tokens; i++) rows.push_back(logits(i));
        return rows;
    }
    // The text goes on along a path, as far as its nodes are in the cache; all else is forgotten.
    void keep(int path, int nodes) {
        llama_memory_t memory = llama_get_memory(context);
        if (nodes > 0) llama_memory_seq_cp(memory, path, 0, held, held + nodes);
        for (int s = 1; s <= paths; s++) llama_memory_seq_rm(memory, s, -1, -1);
        held += nodes;
    }
};

struct Engine {
    const Options &options;
    Model target, draft;
    std::ofstream target_rows, draft_rows, text_csv;
    std::mt19937_64 random;
    long calls = 0, tokens = 0;
    double seconds[3] = {0, 0, 0}; // draft, target, rule

    static int paths(const Options &options) {
        int all = 1;
        for (int width : options.widths) all *= width;
        return options.chain() ? 1 : all;
    }
    explicit Engine(const Options &given)
        : options(given), target(given.target, given, paths(given)), draft(given.draft, given, paths(given)),
          target_rows(given.out + "/target.f32", std::ios::binary), draft_rows(given.out + "/draft.f32", std::ios::binary),
          text_csv(given.out + "/text.csv") {
        if (!text_csv || !target_rows) stop(given.out + ": no folder to write to");
        if (target.vocab != draft.vocab) stop("target and draft have other vocabularies");
        text_csv << "prompt,position,token,accepted,round,drafts\n";
    }
    double coin() { return std::uniform_real_distribution<double>(0.0, 1.0)(random); }

    // exp((logits - most) / T): the header divides rows by their sums.
    Row law(const Row &logits) const {
        Row row(logits.size());
        const float most = *std::max_element(logits.begin(), logits.end());
        for (size_t x = 0; x < row.size(); x++) row[x] = std::exp((logits[x] - most) / (float)options.temperature);
        return row;
    }
    template <class Work> auto timed(int what, Work work) {
        const auto start = std::chrono::steady_clock::now();
        auto done = work();
        seconds[what] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return done;
    }

    // Drafts a tree of `depth` levels. q gets the logits of row 0 and of all nodes but the last level's, which carried-block asks for.
    std::vector<Node> drafted(int depth, std::vector<Row> &q) {
        std::vector<Node> nodes;
        std::vector<std::pair<int, int>> open = {{1, draft.paths}}; // of rows of the last level, the sequences
        size_t first = 0;
        draft.branch();
        for (int level = 0; level < depth; level++) {
            const int width = options.chain() ? 1 : options.widths[level];
            const size_t from = nodes.size();
            for (size_t i = 0; i < open.size(); i++) {
                std::vector<double> coins(width);
                std::vector<int> drafts(width);
                for (double &one : coins) one = coin();
                const Row row = law(q[first + i]);
                const int count = options.chain() ? 1 : specgap_draft_strata(row.data(), draft.vocab, width, coins.data(), drafts.data());
                if (options.chain()) drafts[0] = specgap_draw(row.data(), draft.vocab, coins[0]);
                if (count < 1 || drafts[0] < 0) stop("a row of the draft is no law");
                const int share = open[i].second / width;
                for (int j = 0; j < count; j++) nodes.push_back({drafts[j], (int)(first + i), level, open[i].first + j * share, share});
            }
            if (level + 1 == depth && options.rule != "carried-block") break;
            for (Row &row : draft.grow(nodes, from)) q.push_back(std::move(row));
            first = from + 1;
            open.clear();
            for (size_t i = from; i < nodes.size(); i++) open.push_back({nodes[i].first, nodes[i].paths});
        }
        return nodes;
    }

    // Verifies nodes; the path of those that are kept, and the token behind them.
    std::vector<int> verified(const std::vector<Node> &nodes, const std::vector<Row> &p, const std::vector<Row> &q, bool ends,
                              specgap_age *ages, int &next) {
        const int count = (int)nodes.size(), vocab = target.vocab;
        std::vector<Row> laws[2];
        std::vector<const float *> rows[2];
        std::vector<int> ids, parents, path(count + 1);
        std::vector<double> coins(count + 1), scratch(SPECGAP_SCRATCH((size_t)vocab));
        std::vector<specgap_state> states(count + 1);
        for (double &one : coins) one = coin();
        for (const Row &row : p) laws[0].push_back(law(row));
        for (const Row &row : q) laws[1].push_back(law(row));
        for (int of = 0; of < 2; of++)
            for (int i = 0; i <= count; i++) rows[of].push_back(i < (int)laws[of].size() ? laws[of][i].data() : nullptr);
        for (const Node &node : nodes) ids.push_back(node.token), parents.push_back(node.row);
        int kept = 0;
        if (options.rule == "carried-block") {
            if (ends) rows[1][count] = nullptr;
            specgap_chain chain = {vocab, count, options.widths[0], rows[0].data(), rows[1].data(), ids.data(), coins.data(), ages, scratch.data()};
            kept = specgap_verify_chain(&chain, &next);
            for (int k = 0; k < kept; k++) path[k] = k;
        } else if (options.rule == "token") { // one draft after another
            static const int root[1] = {0};
            for (int one = 1, ignored[1]; kept < count && one == 1;) {
                const float *only[2] = {rows[0][kept], nullptr};
                specgap_tree tree = {vocab, 1, only, &rows[1][kept], &ids[kept], root, SPECGAP_IID, 1, &coins[kept], states.data(), nullptr};
                one = specgap_verify_tree(&tree, ignored, &next);
                if (one < 0) stop("the rule refuses a round: " + std::to_string(one));
                if (one == 1) path[kept] = kept, kept++;
            }
            if (kept == count) next = specgap_draw(rows[0][count], vocab, coins[count]);
        } else {
            const bool four = options.rule == "level-4" || options.rule == "traversal-4";
            specgap_tree tree = {vocab, count, rows[0].data(), rows[1].data(), ids.data(), parents.data(),
                                 options.chain() ? SPECGAP_IID : SPECGAP_STRATA, four ? 4 : 1, coins.data(), states.data(), scratch.data()};
            kept = specgap_verify_tree(&tree, path.data(), &next);
        }
        if (kept < 0 || next < 0) stop("the rule refuses a round: " + std::to_string(kept));
        path.resize(kept);
        return path;
    }

    void write(std::ofstream &file, const Row &row) { file.write((const char *)row.data(), (long)(row.size() * sizeof(float))); }

    void decode(int prompt, std::vector<int> text) {
        const int before = (int)text.size();
        std::vector<specgap_age> ages(SPECGAP_MOST + 1);
        specgap_begin_text(ages.data(), options.chain() ? options.widths[0] : 1);
        random.seed(options.seed + (unsigned long long)prompt);
        target.forget(), draft.forget();
        // The last token of the text is the first of the target's next call.
        std::vector<int> prefix(text.begin(), text.end() - 1);
        target.read(prefix, before);
        while ((int)text.size() < before + options.tokens) {
            const int left = before + options.tokens - (int)text.size(), most = options.chain() ? options.widths[0] : (int)options.widths.size();
            const int depth = options.rule == "plain" ? 0 : std::min(most, left - 1);
            std::vector<Row> q;
            auto nodes = timed(0, [&] {
                auto rows = draft.read(text, before - 1); // what was kept of the last level, and the token behind it
                for (const Row &row : rows) write(draft_rows, row);
                q = {rows.back()};
                return drafted(depth, q);
            });
            auto p = timed(1, [&] {
                std::vector<Node> with_last = {{text.back(), 0, 0, 0, 1 + target.paths}};
                for (Node node : nodes) node.depth++, with_last.push_back(node);
                target.branch();
                return target.grow(with_last, 0);
            });
            int next = -1;
            auto path = timed(2, [&] { return verified(nodes, p, q, left == depth + 1, ages.data(), next); });
            const int kept = (int)path.size();
            write(target_rows, p[0]);
            for (int i = 0; i < kept; i++) {
                write(target_rows, p[path[i] + 1]);
                if (path[i] + 1 < (int)q.size()) write(draft_rows, q[path[i] + 1]);
            }
            // Of a path the target has all nodes, and the draft those with rows. Both get the rest with the next round.
            const int way = kept > 0 ? nodes[path.back()].first : 1;
            int in_draft = 0;
            while (in_draft < kept && path[in_draft] + 1 < (int)q.size()) in_draft++;
            draft.keep(way, in_draft);
            target.keep(way, kept + 1);
            for (int i = 0; i <= kept; i++) {
                text_csv << prompt << ',' << text.size() - before << ',' << (i < kept ? nodes[path[i]].token : next) << ',' << (i ? -1 : kept) << ',' << i << ',';
                if (i == 0 && options.chain())
                    for (const Node &node : nodes) text_csv << node.token << ' ';
                text_csv << '\n';
                text.push_back(i < kept ? nodes[path[i]].token : next);
            }
            calls++, tokens += kept + 1;
        }
        // Rows of the draft that only a further round would have asked for.
        std::vector<int> rest(text.begin(), text.end() - 1);
        for (const Row &row : draft.read(rest, before - 1)) write(draft_rows, row);
    }
};

int main(int count, char **words) {
    Options options;
    if (count < 4) stop("usage: engine TARGET.gguf DRAFT.gguf OUT [--rule RULE] [--tree 4-2-1] [--tokens N] [--temperature T] [--seed S] [--threads N]");
    options.target = words[1], options.draft = words[2], options.out = words[3];
    for (int i = 4; i + 1 < count; i += 2) {
        const std::string name = words[i], value = words[i + 1];
        if (name == "--rule") options.rule = value;
        else if (name == "--tokens") options.tokens = std::atoi(value.c_str());
        else if (name == "--temperature") options.temperature = std::atof(value.c_str());
        else if (name == "--seed") options.seed = std::strtoull(value.c_str(), nullptr, 10);
        else if (name == "--threads") options.threads = std::atoi(value.c_str());
        else if (name == "--tree") {
            std::istringstream levels(value);
            options.widths.clear();
            for (std::string width; std::getline(levels, width, '-');) options.widths.push_back(std::atoi(width.c_str()));
        } else stop(name + ": no such option");
    }
    for (int width : options.widths)
        if (width < 1 || width > SPECGAP_MOST) stop("--tree: give children of a node at each depth, as 4-2-1");
    llama_log_set([](ggml_log_level level, const char *text, void *) { if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr); }, nullptr);
    llama_backend_init();
    Engine engine(options);
    const auto start = std::chrono::steady_clock::now();
    int prompt = 0;
    for (std::string line; std::getline(std::cin, line); prompt++) {
        std::istringstream ids(line);
        std::vector<int> text;
        for (int id; ids >> id;) text.push_back(id);
        if (text.empty()) stop("prompt " + std::to_string(prompt) + ": no ids");
        engine.decode(prompt, std::move(text));
    }
    const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("{\"rule\": \"%s\", \"tokens\": %ld, \"calls\": %ld, \"seconds\": %.2f, \"draft\": %.2f, \"target\": %.2f, \"rule_seconds\": %.2f}\n",
                options.rule.c_str(), engine.tokens, engine.calls, whole, engine.seconds[0], engine.seconds[1], engine.seconds[2]);
}
