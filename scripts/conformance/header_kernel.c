/* The rules of include/specgap.h as a library for harness.py:
 *
 *     python harness.py vectors --kernel header_kernel.c
 *
 * A library of your own has functions of rules' names with these arguments, those that it has:
 *
 *     int RULE(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
 *              const double *coins, double *carry, int *next);
 *
 * p [1 + drafts, vocab], q alike but with no last row where the vectors have none: one row each for several drafts of one
 * position. coins [1 + drafts] are even in [0, 1); the last one draws `next`, the token behind what is kept. parents is
 * NULL but for traversal and traversal_4, iid 1 where drafts are independent draws of q, and carry NULL but for carried
 * and carried_block, which replace it. Returned is how many drafts are kept, with trees the row that is kept last, with
 * drafts of one position anything from 0 on; -1 and -2 refuse rows or drafts, -3 a kind of drafts that the library lacks.
 */
#include <stdlib.h>
#ifndef SPECGAP_H
#include "../../include/specgap.h"
#endif

/* Of one noise [vocab]: drafts, -1 behind the last. Returns which of them the target's own token is. */
int shared_gumbel(const float *p, const float *q, int vocab, int drafts, const float *noise, int *tokens, int *next) {
    int found = specgap_first_to_ring(q, vocab, noise, drafts, tokens), slot = 0;
    int own = specgap_first_to_ring(p, vocab, noise, 1, next);
    if (found < 0 || own < 0) return found < own ? found : own;
    for (int k = found; k < drafts; k++) tokens[k] = -1;
    while (slot < drafts && tokens[slot] != *next) slot++;
    return slot;
}

int draft_strata(const float *q, int vocab, int n, const double *coins, int *drafts) {
    return specgap_draft_strata(q, vocab, n, coins, drafts);
}

/* Rows one behind the other; all memory has just the size that the header asks for. */
int verify_tree(const float *p, const float *q, int vocab, int nodes, const int *tokens, const int *parents, int iid,
                int levels, int leaves, const double *coins, int *path, int *token) {
    const float **rows = malloc(2 * (size_t)(nodes + 1) * sizeof *rows);
    struct specgap_state *states = malloc((size_t)(nodes + 1) * sizeof *states);
    double *scratch = malloc(SPECGAP_SCRATCH((size_t)(vocab > 0 ? vocab : 0)) * sizeof *scratch);
    for (int row = 0; row <= nodes; row++) {
        rows[row] = p + (size_t)row * (size_t)vocab;
        rows[nodes + 1 + row] = q + (size_t)row * (size_t)vocab;
        if (row > 0 && !leaves) rows[row] = 0;
    }
    struct specgap_tree tree = {vocab, nodes, rows, rows + nodes + 1, tokens, parents,
                                iid ? SPECGAP_IID : SPECGAP_STRATA, levels, coins, states, levels == 4 ? scratch : 0};
    int kept = specgap_verify_tree(&tree, path, token);
    free(rows), free(states), free(scratch);
    return kept;
}

/* Chains: each draft by itself, and by `carried-block`. A draft is kept below its chance, in a tree at or above the rest. */
int token(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
          const double *coins, double *carry, int *next) {
    static const int root[1] = {0};
    int path[1];
    (void)parents, (void)iid, (void)carry;
    for (int k = 0; k < drafts; k++, p += vocab, q += vocab) {
        double two[2] = {coins[k] > 0.0 ? 1.0 - coins[k] : 1.0 - 1.0 / 9007199254740992.0, coins[drafts]};
        int kept = verify_tree(p, q, vocab, 1, tokens + k, root, 1, 1, 0, two, path, next);
        if (kept != 1) return kept < 0 ? kept : k;
    }
    *next = specgap_draw(p, vocab, coins[drafts]);
    return *next < 0 ? *next : drafts;
}

int one_hot(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
            const double *coins, double *carry, int *next) {
    return token(p, q, vocab, drafts, tokens, parents, iid, coins, carry, next);
}

/* carry: the ages, drafted and kept. */
int carried_block(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
                  const double *coins, double *carry, int *next) {
    const float *rows[2][SPECGAP_MOST + 1];
    double *scratch = malloc(SPECGAP_SCRATCH((size_t)vocab) * sizeof *scratch);
    (void)parents, (void)iid;
    for (int k = 0; k <= drafts; k++) {
        rows[0][k] = p + (size_t)k * (size_t)vocab;
        rows[1][k] = q + (size_t)k * (size_t)vocab;
    }
    struct specgap_chain chain = {vocab, drafts, drafts, rows[0], rows[1], tokens, coins, (struct specgap_age *)carry, scratch};
    int kept = specgap_verify_chain(&chain, next);
    free(scratch);
    return kept;
}

/* Drafts of one position: which of them is kept, or the token behind them. */
static int fan(const float *p, const float *q, int vocab, int drafts, const int *tokens, int iid, const double *coins, int *next) {
    static const int root[SPECGAP_MOST];
    int path[1];
    int kept = verify_tree(p, q, vocab, drafts, tokens, root, iid, iid ? 1 : 4, 0, coins, path, next);
    if (kept == 1) *next = tokens[path[0]];
    return kept;
}

int rrs(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
        const double *coins, double *carry, int *next) {
    (void)parents, (void)iid, (void)carry;
    return fan(p, q, vocab, drafts, tokens, 1, coins, next);
}

/* Strata are cut in the order of ids; the harness gives rows whose heaviest token of q is first. */
int level_4(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
            const double *coins, double *carry, int *next) {
    (void)parents, (void)iid, (void)carry;
    return fan(p, q, vocab, drafts, tokens, 0, coins, next);
}

int exact_match(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
                const double *coins, double *carry, int *next) {
    (void)q, (void)tokens, (void)parents, (void)iid, (void)carry;
    *next = specgap_draw(p, vocab, coins[drafts]);
    return *next < 0 ? *next : 0;
}

static int deep(const float *p, const float *q, int vocab, int nodes, const int *tokens, const int *parents, int iid,
                int levels, const double *coins, int *next) {
    int *path = malloc((size_t)(nodes + 1) * sizeof *path);
    int kept = verify_tree(p, q, vocab, nodes, tokens, parents, iid, levels, 1, coins, path, next);
    int row = kept > 0 ? path[kept - 1] + 1 : kept;
    free(path);
    return row;
}

int traversal(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
              const double *coins, double *carry, int *next) {
    (void)carry;
    return deep(p, q, vocab, drafts, tokens, parents, iid, 1, coins, next);
}

int traversal_4(const float *p, const float *q, int vocab, int drafts, const int *tokens, const int *parents, int iid,
                const double *coins, double *carry, int *next) {
    (void)carry;
    return deep(p, q, vocab, drafts, tokens, parents, iid, 4, coins, next);
}
