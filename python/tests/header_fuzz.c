/* Any rows, drafts and coins through include/specgap.h: a token that its row has, or a refusal that is due.
 * Arguments: rounds, the largest vocabulary, and a seed. Prints how many rounds were kept to their end, and refused. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include "header_kernel.c"

static unsigned long long seed;
static double even(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(seed >> 11) / 9007199254740992.0;
}
static int below(int n) { return (int)(even() * n); }

static void check(int holds, const char *what) {
    if (!holds) fprintf(stderr, "%s, seed %llu\n", what, seed), abort();
}

/* A row of one kind: ties, one token, or entries of all sizes; one in 12 with an entry that no law has. */
static float *row(int vocab) {
    static const float values[] = {0.0f, 0.0f, 1e-45f, 1e-38f, 1e-7f, 0.25f, 0.5f, 1.0f, 1.0f, 3e38f};
    const float wrong[] = {-1e-9f, -0.5f, (float)NAN, (float)INFINITY, -(float)INFINITY};
    float *made = malloc((size_t)vocab * sizeof *made);
    int kind = below(5), one = below(vocab);
    for (int x = 0; x < vocab; x++)
        made[x] = kind == 0 ? (float)(x == one) : kind == 1 ? 0.25f : kind == 2 ? values[below(10)]
                : even() < 0.3 ? 0.0f : (float)(even() * even() * even());
    if (below(12) == 0) made[below(vocab)] = wrong[below(5)];
    return made;
}

static int support(const float *row, int vocab) {
    int some = 0;
    for (int x = 0; x < vocab; x++) {
        if (!(row[x] >= 0.0f) || row[x] > FLT_MAX) return -1;
        some += row[x] > 0.0f;
    }
    return some > 0 ? some : -1;
}

static double coin(void) { return below(8) ? even() : below(2) ? 0.0 : 1.0 - 1.0 / 9007199254740992.0; }

static int drafted(const float *q, int vocab, int n, int *drafts) {
    double coins[64];
    int some = support(q, vocab);
    for (int i = 0; i < n; i++) coins[i] = coin();
    int count = specgap_draft_strata(q, vocab, n, coins, drafts);
    if (n < 1 || n > SPECGAP_MOST) check(count == SPECGAP_BAD_ARGUMENT, "too many drafts");
    else if (some < 0) check(count == SPECGAP_BAD_ROW, "a bad row is drafted from");
    /* Tokens below 1e-30 of a row may be lost in its sum. */
    else check(count > 0 && count <= n && count <= some, "other than as many drafts as there are");
    for (int i = 0; i < count; i++) {
        check(drafts[i] >= 0 && drafts[i] < vocab && q[drafts[i]] > 0.0f, "a draft of no mass");
        for (int j = 0; j < i; j++) check(drafts[i] != drafts[j], "a draft twice");
    }
    return count;
}

static int tree(int vocab) {
    int nodes = below(below(10) ? 9 : 64), iid = below(2), levels = below(2) && !iid ? 4 : 1, leaves = below(2);
    int *tokens = malloc((size_t)(nodes + 1) * sizeof *tokens), *parents = malloc((size_t)(nodes + 1) * sizeof *parents);
    int *path = malloc((size_t)(nodes + 1) * sizeof *path), *slots = calloc((size_t)nodes + 1, sizeof *slots);
    const float **p = malloc((size_t)(nodes + 1) * sizeof *p), **q = malloc((size_t)(nodes + 1) * sizeof *q);
    double *coins = malloc((size_t)(nodes + 1) * sizeof *coins), *scratch = malloc(SPECGAP_SCRATCH((size_t)vocab) * sizeof *scratch);
    struct specgap_state *states = malloc((size_t)(nodes + 1) * sizeof *states);
    int fine = 1, next = -7, drafts[64];
    for (int i = 0; i <= nodes; i++) {
        p[i] = row(vocab), q[i] = row(vocab), coins[i] = coin();
        tokens[i] = parents[i] = 0;
    }
    for (int i = 0; i < nodes; i++) slots[parents[i] = below(3) ? below(i + 1) : i]++;
    for (int i = 0; i <= nodes; i++) {
        int count = slots[i] > 0 && !iid ? drafted(q[i], vocab, slots[i], drafts) : slots[i], slot = 0;
        fine = fine && support(p[i], vocab) > 0 && slots[i] <= SPECGAP_MOST && count == slots[i];
        for (int j = 0; j < nodes; j++) {
            if (parents[j] != i) continue;
            if (iid) drafts[0] = specgap_draw(q[i], vocab, coin());
            tokens[j] = iid ? drafts[0] : slot < count ? drafts[slot] : -1;
            fine = fine && tokens[j] >= 0;
            slot++;
        }
    }
    if (nodes > 0 && below(20) == 0) {
        int at = below(nodes), other = below(4);
        fine = -1;
        if (other < 3) tokens[at] = other == 0 ? INT_MIN : other == 1 ? INT_MAX : below(vocab);
        else parents[at] = below(3) - 1;
    }
    for (int i = 1; i <= nodes && !leaves; i++)
        if (slots[i] == 0) free((void *)p[i]), p[i] = 0;
    struct specgap_tree whole = {vocab, nodes, p, q, tokens, parents, iid ? SPECGAP_IID : SPECGAP_STRATA, levels, coins,
                                 states, levels == 4 ? scratch : 0};
    int kept = specgap_verify_tree(&whole, path, &next);
    check(kept >= SPECGAP_BAD_ARGUMENT && kept <= nodes, "no code");
    check(kept >= 0 || fine < 1, "a good tree is refused");
    check(kept < 0 || support(p[0], vocab) > 0, "a bad row of the text is passed");
    if (kept < 0) check(next == -7, "a refusal writes");
    for (int i = 0, up = 0; i < kept; i++) {
        check(path[i] >= 0 && path[i] < nodes && parents[path[i]] == up, "a path that is none");
        check(p[up] && p[up][tokens[path[i]]] > 0.0f, "a token of no mass is kept");
        up = path[i] + 1;
    }
    if (kept >= 0) {
        const float *last = p[kept ? path[kept - 1] + 1 : 0];
        check(last ? next >= 0 && next < vocab && last[next] > 0.0f : next == -1, "a token of no mass comes out");
    }
    for (int i = 0; i <= nodes; i++) free((void *)p[i]), free((void *)q[i]);
    free(p), free(q), free(tokens), free(parents), free(path), free(slots), free(coins), free(scratch), free(states);
    return kept;
}

/* Rounds of a text, which carry on. */
static int chain(int vocab) {
    int most = 1 + below(below(4) ? 6 : 40), kept = 0;
    size_t ages_of = (size_t)(most + 1) * sizeof(struct specgap_age);
    struct specgap_age *ages = malloc(ages_of), *before = malloc(ages_of);
    double *scratch = malloc(SPECGAP_SCRATCH((size_t)vocab) * sizeof *scratch);
    specgap_begin_text(ages, most);
    for (int round = 0; round < 3; round++) {
        int drafts = below(2) ? most : below(most + 1), fine = most <= SPECGAP_MOST, next = -7;
        int *tokens = malloc((size_t)(drafts + 1) * sizeof *tokens);
        double *coins = malloc((size_t)(drafts + 1) * sizeof *coins);
        const float **p = malloc((size_t)(drafts + 1) * sizeof *p), **q = malloc((size_t)(drafts + 1) * sizeof *q);
        for (int k = 0; k <= drafts; k++) {
            p[k] = row(vocab), q[k] = row(vocab), coins[k] = coin();
            if (k == drafts && (drafts < most || below(4) == 0) && below(20)) free((void *)q[k]), q[k] = 0;
            fine = fine && support(p[k], vocab) > 0 && (k == drafts && !q[k] ? 1 : support(q[k], vocab) > 0);
            tokens[k] = q[k] ? below(30) ? specgap_draw(q[k], vocab, coin()) : below(vocab + 2) - 1 : 0;
            if (k < drafts) fine = fine && tokens[k] >= 0 && tokens[k] < vocab && q[k][tokens[k]] > 0.0f;
        }
        fine = fine && (drafts == most || !q[drafts]);
        for (int j = 0; j <= most; j++) before[j] = ages[j];
        struct specgap_chain whole = {vocab, drafts, most, p, q, tokens, coins, ages, scratch};
        kept = specgap_verify_chain(&whole, &next);
        check(kept >= SPECGAP_BAD_ARGUMENT && kept <= drafts && (kept >= 0) == fine, "a chain is refused that is good, or passed that is not");
        double sum = 0.0;
        for (int j = 0; j <= most; j++) {
            if (kept < 0) check(ages[j].drafted == before[j].drafted && ages[j].kept == before[j].kept && next == -7, "a refusal writes");
            check(ages[j].kept >= 0.0 && ages[j].kept <= ages[j].drafted * (1.0 + 1e-6) + 1e-6, "ages that are none");
            sum += ages[j].kept;
        }
        check(fabs(sum - 1.0) < 1e-6, "ages that do not add up");
        for (int k = 0; k < kept; k++) check(p[k][tokens[k]] > 0.0f, "a token of no mass is kept");
        if (kept >= 0) check(next >= 0 && next < vocab && p[kept][next] > 0.0f, "a token of no mass comes out");
        for (int k = 0; k <= drafts; k++) free((void *)p[k]), free((void *)q[k]);
        free(p), free(q), free(tokens), free(coins);
    }
    free(ages), free(before), free(scratch);
    return kept;
}

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 20000, kept = 0, refused = 0;
    int largest = count > 2 ? atoi(words[2]) : 3000, drafts[64];
    seed = count > 3 ? (unsigned long long)atoll(words[3]) : 32;
    for (long round = 0; round < rounds; round++) {
        int vocab = 1 + below(round % 100 ? 24 : (int)exp(even() * log(largest)));
        float *q = row(vocab);
        int some = support(q, vocab), x = specgap_draw(q, vocab, coin());
        check(some < 0 ? x == SPECGAP_BAD_ROW : x >= 0 && x < vocab && q[x] > 0.0f, "a draw of no mass");
        drafted(q, vocab, below(4) ? 1 + below(8) : below(65), drafts);
        free(q);
        int ended = below(2) ? tree(vocab) : chain(vocab);
        if (ended < 0) refused++;
        else kept++;
    }
    printf("%ld %ld\n", kept, refused);
    return 0;
}
