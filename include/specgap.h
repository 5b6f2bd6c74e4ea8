/* specgap.h: drafts from strata, and rules that verify them without changing the target's law.
 *
 * C99, one file, no allocation, nothing to link. Copy it. All state is the caller's, so that calls from
 * several threads do not meet. Random numbers are arguments, even in [0, 1), so that a run can be repeated.
 *
 * Rows are probabilities in float, of any scale (they are divided by their sums); sums are in double. p is
 * always the target's row, q the draft's.
 *
 *     n = specgap_draft_strata(q, vocab, 4, coins, drafts);       drafts of one row
 *     x = specgap_draw(q, vocab, coin);                           one draw
 *     kept = specgap_verify_tree(&tree, path, &token);            nodes that are kept, and the token behind them
 *     kept = specgap_verify_chain(&chain, &token);                drafts of a chain that are kept, and the same
 *     n = specgap_first_to_ring(q, vocab, noise, 4, drafts);      drafts by a noise that the target has too
 *
 * One position is a tree of one level: with SPECGAP_STRATA and four levels it is verified by `level-4`, with SPECGAP_IID
 * and one by recursive rejection. A chain, one draw of q a node, is verified as a block. Deeper trees are verified from
 * their leaves to the root: `traversal`, with four levels at the root `traversal-4`. Chains whose rounds know of each other
 * are verified by `carried-block`, with fewer target calls.
 *
 * With specgap_first_to_ring on q and on p draft and target have their tokens from one noise: keep the target's own if
 * it is a draft (`shared-gumbel`). Its text is the one that the target writes alone with the same noise.
 *
 * What it is: docs/guide/better-drafts.md; proofs: docs/theory/stratified.md, level-rule.md, tree-replay.md,
 * several-rounds.md, shared-noise.md.
 * Time: drafting sweeps the row four times, whatever n is; a rule touches the tokens of a stratum once a pass, and
 * stops at the first draft that is kept. Compile with -O3.
 */
#ifndef SPECGAP_H
#define SPECGAP_H

/* The most children of a node. */
#define SPECGAP_MOST 32

enum specgap_law {
    SPECGAP_STRATA, /* the sure tokens of q, and one of each stratum */
    SPECGAP_IID     /* independent draws of q; a chain is one a node */
};

/* What calls return where they refuse. Nothing was written then. */
enum specgap_error {
    SPECGAP_BAD_ROW = -1,     /* a negative entry, NaN, infinity, or no mass */
    SPECGAP_BAD_DRAFT = -2,   /* a draft that its row cannot have drawn in that place */
    SPECGAP_BAD_ARGUMENT = -3 /* no tokens, more children than SPECGAP_MOST, parents behind children */
};

/* One draft: tokens start..stop of q in the order of their ids, the first and the last perhaps shared. */
struct specgap_stratum {
    int start, stop;
    double first, last, middle; /* what is alive of these, and of all between */
    double link[4];             /* first and others, where the draft before is not this first token, and where it is */
    double spent;               /* of p over its sum, off each token between */
};

/* A row of a tree: its drafts, given that none was kept so far. The caller gives 1 + nodes of these. */
struct specgap_state {
    int ready, children, sure, strata;
    int certain[SPECGAP_MOST];
    double scale, p_scale;
    double refused; /* the chance that all offers so far were refused */
    struct specgap_stratum part[SPECGAP_MOST];
};

/* Doubles of scratch that four levels at the root need, and chains that carry on; one level needs none. */
#define SPECGAP_SCRATCH(vocab) (2 * (vocab) + SPECGAP_MOST)

#if defined(__cplusplus)
#define SPECGAP_ALONE
#else
#define SPECGAP_ALONE restrict
#endif
#if defined(__GNUC__)
#define SPECGAP_API static __attribute__((unused))
#else
#define SPECGAP_API static
#endif

static double specgap_sum(const float *row, int vocab) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int bad = 0, x = 0;
    for (; x + 4 <= vocab; x += 4)
        for (int i = 0; i < 4; i++) {
            sums[i] += row[x + i];
            bad |= !(row[x + i] >= 0.0f);
        }
    for (; x < vocab; x++) {
        sums[0] += row[x];
        bad |= !(row[x] >= 0.0f);
    }
    double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return !bad && sum <= 1e300 ? sum : -1.0;
}

static int specgap_is_certain(const struct specgap_state *state, int x) {
    for (int i = 0; i < state->sure; i++)
        if (state->certain[i] == x) return 1;
    return 0;
}

/* The next token from x on that is sure, or `stop`. */
static int specgap_next_certain(const struct specgap_state *state, int x, int stop) {
    for (int i = 0; i < state->sure; i++)
        if (state->certain[i] >= x && state->certain[i] < stop) stop = state->certain[i];
    return stop;
}

/* The sure tokens of q, and its strata. */
static int specgap_strata(const float *q, int vocab, int n, struct specgap_state *state) {
    double left = specgap_sum(q, vocab), total = 0.0, ends = 0.0;
    if (!(left > 0.0)) return SPECGAP_BAD_ROW;
    state->sure = state->strata = 0;
    state->scale = 0.0;
    /* The n - 1 heaviest, of ties the lowest id first. */
    int heavy[SPECGAP_MOST], most = 0;
    float least = -1.0f;
    for (int x = 0; x < vocab && n > 1; x++) {
        if (most == n - 1 && !(q[x] > least)) continue;
        int at = most < n - 1 ? most++ : n - 2;
        for (; at > 0 && q[heavy[at - 1]] < q[x]; at--) heavy[at] = heavy[at - 1];
        heavy[at] = x;
        if (most == n - 1) least = q[heavy[n - 2]];
    }
    for (int i = 0; i < most; i++) {
        double mass = q[heavy[i]];
        /* A token of a whole stratum is certain in spite of rounding. */
        if (mass <= 0.0 || (n - i) * mass < left * (1.0 - 1.0 / 1099511627776.0)) break;
        left -= mass;
        state->certain[state->sure++] = heavy[i];
    }
    for (int x = 0; x < vocab; x++) {
        int next = specgap_next_certain(state, x, vocab);
        for (; x < next; x++) total += q[x];
    }
    if (!(total > 0.0)) return 0;
    int count = n - state->sure, j = 0;
    state->strata = count;
    state->scale = count / total;
    struct specgap_stratum *part = state->part;
    for (int i = 0; i < count; i++) part[i].start = -1;
    int next = specgap_next_certain(state, 0, vocab);
    double low = 0.0, high = count > 1 ? total / count : total;
    for (int x = 0; x < vocab && j < count; x++) {
        if (x == next) {
            next = specgap_next_certain(state, x + 1, vocab);
            continue;
        }
        double before = ends;
        ends += q[x];
        if (ends < high && part[j].start >= 0) continue;
        /* A stratum begins or ends here; a token may reach over a cut. */
        while (j < count) {
            if (part[j].start < 0 && ends > low) {
                part[j].start = x;
                part[j].first = (ends - low) * state->scale;
            }
            if (part[j].start < 0 || ends < high) break;
            part[j].stop = x;
            part[j].last = part[j].start < x ? (high - before) * state->scale : 0.0;
            if (part[j].start == x) part[j].first = 1.0;
            j++;
            low = high;
            high = j + 1 < count ? total * (j + 1) / count : total;
        }
    }
    if (j < count) return SPECGAP_BAD_ROW;
    for (j = 0; j < count; j++) {
        double here = part[j].first, *link = part[j].link;
        link[0] = link[1] = link[2] = link[3] = 1.0;
        if (j > 0 && part[j].start == part[j - 1].stop) {
            double missed = 1.0 - part[j - 1].last, chance = here / missed;
            link[0] = 1.0 / missed;
            link[1] = (1.0 - chance) / (1.0 - here);
            link[2] = 0.0;
            link[3] = 1.0 / (1.0 - here);
        }
        part[j].middle = part[j].start < part[j].stop ? 1.0 - here - part[j].last : 0.0;
        part[j].spent = 0.0;
    }
    return 0;
}

/* What a stratum's draft was drawn with at a token, before anything was kept. */
static double specgap_law(const float *q, const struct specgap_state *state, int j, int x) {
    const struct specgap_stratum *part = &state->part[j];
    if (x == part->start) return part->first;
    if (x == part->stop) return part->last;
    return specgap_is_certain(state, x) ? 0.0 : q[x] * state->scale;
}

/* Drafts n tokens: the sure ones, heaviest first, then one of each stratum; as many as q has tokens where these are
 * fewer. No token comes twice. coins [n]. Returns how many. */
SPECGAP_API int specgap_draft_strata(const float *q, int vocab, int n, const double *coins, int *drafts) {
    struct specgap_state state;
    if (vocab < 1 || n < 1 || n > SPECGAP_MOST) return SPECGAP_BAD_ARGUMENT;
    int failed = specgap_strata(q, vocab, n, &state), last = -1;
    if (failed) return failed;
    for (int i = 0; i < state.sure; i++) drafts[i] = state.certain[i];
    for (int j = 0; j < state.strata; j++) {
        const struct specgap_stratum *part = &state.part[j];
        const double *link = part->link + (last == part->start ? 2 : 0);
        const double total = part->first * link[0] + (part->middle + part->last) * link[1];
        double sum = part->first * link[0], goal = coins[j] * total, times = state.scale * link[1];
        last = part->start;
        for (int x = part->start + 1; x < part->stop && !(sum > goal); x++) {
            int next = specgap_next_certain(&state, x, part->stop);
            for (; x < next && !(sum > goal); x++) {
                if (q[x] <= 0.0f) continue;
                sum += q[x] * times;
                last = x;
            }
            if (sum > goal) break;
        }
        if (!(sum > goal) && part->last * link[1] > 0.0) last = part->stop;
        drafts[state.sure + j] = last;
    }
    return state.sure + state.strata;
}

/* Draws a token of a row by one number. */
SPECGAP_API int specgap_draw(const float *row, int vocab, double coin) {
    double total = vocab < 1 ? -1.0 : specgap_sum(row, vocab), sum = 0.0;
    int last = SPECGAP_BAD_ROW;
    if (!(total > 0.0)) return SPECGAP_BAD_ROW;
    for (int x = 0; x < vocab; x++) {
        if (row[x] <= 0.0f) continue;
        last = x;
        sum += row[x];
        if (sum > coin * total) break;
    }
    return last;
}

/* The n tokens of least noise/row, in this order: fewer if the row has fewer. noise [vocab] is -log(1 - u) of an even
 * number u for each token, made anew from seed and position. Returns how many, or an error. */
SPECGAP_API int specgap_first_to_ring(const float *row, int vocab, const float *noise, int n, int *tokens) {
    double at[SPECGAP_MOST];
    int found = 0;
    if (vocab < 1 || n < 1 || n > SPECGAP_MOST) return SPECGAP_BAD_ARGUMENT;
    if (!(specgap_sum(row, vocab) > 0.0)) return SPECGAP_BAD_ROW;
    for (int x = 0; x < vocab; x++) {
        double clock = row[x] > 0.0f ? (double)noise[x] / row[x] : 0.0;
        int place = found;
        if (row[x] <= 0.0f || (found == n && !(clock < at[n - 1]))) continue;
        if (found < n) found++;
        else place--;
        for (; place > 0 && clock < at[place - 1]; place--) {
            at[place] = at[place - 1];
            tokens[place] = tokens[place - 1];
        }
        at[place] = clock;
        tokens[place] = x;
    }
    return found;
}

/* What stratum j's first token, those between and its last are multiplied by, for the probability that they were
 * drafted and nothing is kept: messages along the chain of strata. */
static void specgap_reach(const struct specgap_state *state, int j, double reach[3]) {
    double other = 1.0, same = 0.0, after = 1.0, shared = 1.0;
    for (int i = 0; i <= j; i++) {
        const struct specgap_stratum *part = &state->part[i];
        double first = other * part->link[0] + same * part->link[2];
        double others = other * part->link[1] + same * part->link[3];
        reach[0] = first;
        reach[1] = reach[2] = others;
        other = first * part->first + others * part->middle;
        same = others * part->last;
    }
    for (int i = state->strata - 1; i > j; i--) {
        const struct specgap_stratum *part = &state->part[i];
        double rest = part->middle * after + part->last * shared;
        double next = part->link[0] * part->first * after + part->link[1] * rest;
        shared = part->link[2] * part->first * after + part->link[3] * rest;
        after = next;
    }
    reach[0] *= after;
    reach[1] *= after;
    reach[2] *= shared;
}

/* The probability that nothing was kept of what strata drafted. */
static double specgap_alive(const struct specgap_state *state) {
    double reach[3];
    if (state->strata == 0) return 1.0;
    specgap_reach(state, 0, reach);
    const struct specgap_stratum *part = &state->part[0];
    return reach[0] * part->first + reach[1] * part->middle + reach[2] * part->last;
}


/* A drafted tree. Row 0 is the text, row i + 1 drafted node i. */
struct specgap_tree {
    int vocab, nodes;
    const float *const *p; /* [1 + nodes]; NULL of a leaf: the token behind it is not drawn */
    const float *const *q; /* [1 + nodes]; read where there are children */
    const int *tokens;
    const int *parents; /* the row of each node's parent, before the node; children of a row in its drafts' order */
    enum specgap_law law;
    int levels;                   /* at the root: 4 (.8, .5, .2, 0; strata alone) or 1 (0) */
    const double *coins;          /* [1 + nodes], even in [0, 1): one a node, and one for the last draw */
    struct specgap_state *states; /* [1 + nodes] */
    double *scratch;              /* [SPECGAP_SCRATCH(vocab)]; NULL with one level */
};

/* Tokens that more than one draft may be: the ends of strata, and sure ones; with what is owed to them. */
struct specgap_offer {
    const struct specgap_tree *tree;
    struct specgap_state *state;
    const float *p, *q;
    double owed, paid;                             /* in all */
    double times[SPECGAP_MOST], more[SPECGAP_MOST]; /* of the last pass over each stratum */
    double drawn;                                  /* of independent drafts: what of q was taken off so far */
    double *left, *laws;                           /* with four levels: what is owed, and what is alive, by token */
    int specials, special[3 * SPECGAP_MOST];
    double due[3 * SPECGAP_MOST];
};

static double *specgap_due(struct specgap_offer *offer, int x) {
    for (int i = 0; i < offer->specials; i++)
        if (offer->special[i] == x) return &offer->due[i];
    return 0;
}

static double specgap_p(const struct specgap_offer *offer, int x) {
    return offer->p[x] * offer->state->p_scale;
}

static void specgap_mark(struct specgap_offer *offer, int x) {
    int i = offer->specials;
    if (specgap_due(offer, x)) return;
    for (; i > 0 && offer->special[i - 1] > x; i--) {
        offer->special[i] = offer->special[i - 1];
        offer->due[i] = offer->due[i - 1];
    }
    offer->special[i] = x;
    offer->due[i] = offer->owed * specgap_p(offer, x);
    offer->specials++;
}

/* The laws of a row's drafts, and whether its children can be drafts of it. */
static int specgap_begin(const struct specgap_tree *tree, int row) {
    struct specgap_state *state = &tree->states[row];
    const float *p = tree->p[row], *q = tree->q[row];
    int n = state->children, slot = 0, failed = 0;
    double sum = p ? specgap_sum(p, tree->vocab) : n > 0 ? -1.0 : 1.0;
    if (!(sum > 0.0)) return SPECGAP_BAD_ROW;
    state->p_scale = 1.0 / sum;
    state->sure = state->strata = 0;
    state->scale = 0.0;
    if (n > 0 && tree->law == SPECGAP_IID) {
        double total = specgap_sum(q, tree->vocab);
        if (!(total > 0.0)) return SPECGAP_BAD_ROW;
        state->strata = n;
        state->scale = 1.0 / total;
        for (int j = 0; j < n; j++) {
            struct specgap_stratum whole = {-1, 0, 0.0, 0.0, 1.0, {1.0, 1.0, 1.0, 1.0}, 0.0};
            whole.stop = tree->vocab;
            state->part[j] = whole;
        }
    } else if (n > 0) {
        failed = specgap_strata(q, tree->vocab, n, state);
        if (failed) return failed;
    }
    if (state->sure + state->strata != n) return SPECGAP_BAD_DRAFT;
    for (int i = 0; i < tree->nodes; i++) {
        if (tree->parents[i] != row) continue;
        int x = tree->tokens[i], j = slot++ - state->sure;
        if (j < 0) {
            if (x != state->certain[slot - 1]) return SPECGAP_BAD_DRAFT;
        } else {
            const struct specgap_stratum *part = &state->part[j];
            if (x < part->start || x > part->stop || !(specgap_law(q, state, j, x) > 0.0)) return SPECGAP_BAD_DRAFT;
        }
    }
    state->ready = 1;
    return 0;
}

/* The share of a mass that a pass at a level takes where so much is owed. */
static double specgap_share(double owed, double mass, double level) {
    double take = (owed - level * mass) / (1.0 - level);
    return take <= 0.0 || mass <= 0.0 ? 0.0 : take >= mass ? 1.0 : take / mass;
}

static double specgap_positive(double value) { return value > 0.0 ? value : 0.0; }

/* The chance with which a pass over stratum j asks its own draft. */
static double specgap_chance(struct specgap_offer *offer, int j, double level, int x) {
    const struct specgap_state *state = offer->state;
    const struct specgap_stratum *part = &state->part[j];
    double reach[3], *due = specgap_due(offer, x), p = specgap_p(offer, x), q = offer->q[x] * state->scale;
    specgap_reach(state, j, reach);
    if (x == part->start) return specgap_share(*due, part->first * reach[0], level);
    if (x == part->stop) return specgap_share(*due, part->last * reach[2], level);
    if (offer->left) return specgap_share(offer->left[x], offer->laws[j + x] * reach[1], level);
    if (offer->tree->law == SPECGAP_IID)
        return specgap_share(specgap_positive(offer->owed * p - offer->drawn * q), q * reach[1], level);
    return specgap_share(offer->owed * p, specgap_positive(q - part->spent * p) * reach[1], level);
}

/* A pass over stratum j. Without levels above 0 what is owed to a token between its ends is owed p, and what is alive
 * of it q - spent p: it takes owed p, or all. */
static void specgap_take(struct specgap_offer *offer, int j, double level) {
    struct specgap_state *state = offer->state;
    struct specgap_stratum *part = &state->part[j];
    double reach[3], taken = 0.0, middle = 0.0;
    specgap_reach(state, j, reach);
    const double times = reach[1], p_scale = state->p_scale, scale = state->scale;
    if (offer->left) {
        double *SPECGAP_ALONE left = offer->left, *SPECGAP_ALONE laws = offer->laws + j;
        const double over = 1.0 / (1.0 - level), back = times > 0.0 ? 1.0 / times : 0.0;
        for (int x = part->start + 1; x < part->stop; x++) {
            double mass = laws[x] * times, take = (left[x] - level * mass) * over;
            take = take < 0.0 ? 0.0 : take;
            take = take > mass ? mass : take;
            left[x] -= take;
            taken += take;
            mass = (mass - take) * back;
            laws[x] = mass;
            middle += mass;
        }
    } else if (offer->tree->law == SPECGAP_IID) {
        const double owed = offer->owed * p_scale, drawn = offer->drawn * scale, own = times * scale;
        for (int x = 0; x < part->stop; x++) {
            double due = specgap_positive(owed * offer->p[x] - drawn * offer->q[x]), mass = own * offer->q[x];
            taken += due < mass ? due : mass;
        }
        offer->drawn += times;
        middle = times > 0.0 ? 1.0 - taken / times : 0.0;
    } else {
        const double more = times > 0.0 ? offer->owed / times : 0.0;
        const double before = part->spent * p_scale, after = (part->spent + more) * p_scale;
        for (int x = part->start + 1; x < part->stop; x++) {
            int next = specgap_next_certain(state, x, part->stop);
            for (; x < next; x++) {
                double law = specgap_positive(offer->q[x] * scale - before * offer->p[x]);
                double rest = specgap_positive(offer->q[x] * scale - after * offer->p[x]);
                middle += rest;
                taken += law - rest;
            }
        }
        taken *= times;
        offer->times[j] = times;
        offer->more[j] = more;
        part->spent += more;
    }
    for (int end = 0; part->start >= 0 && end < (part->start < part->stop ? 2 : 1); end++) {
        double *living = end ? &part->last : &part->first, *due = specgap_due(offer, end ? part->stop : part->start);
        double mass = *living * reach[end ? 2 : 0], share = specgap_share(*due, mass, level);
        taken += share * mass;
        *due = specgap_positive(*due - share * mass);
        *living *= 1.0 - share;
    }
    part->middle = specgap_positive(middle);
    offer->paid += taken;
}

/* The node that is draft `slot` of a row. */
static int specgap_child(const struct specgap_tree *tree, int row, int slot) {
    for (int i = row; i < tree->nodes; i++)
        if (tree->parents[i] == row && slot-- == 0) return i;
    return -1;
}

/* What is left of what was owed to tokens from..to, none of them special, of stratum j (or of none). Stops behind the
 * token that passes `goal`, and puts it into `last`. */
static double specgap_left(const struct specgap_offer *offer, int from, int to, int j, double goal, int *last) {
    const struct specgap_state *state = offer->state;
    const double owed = offer->owed * state->p_scale;
    const int iid = state->strata > 0 && offer->tree->law == SPECGAP_IID, inside = !iid && !offer->left && j >= 0;
    const double drawn = iid ? offer->drawn * state->scale : inside ? offer->times[j] * state->scale : 0.0;
    const double spent = inside ? (state->part[j].spent - offer->more[j]) * state->p_scale * offer->times[j] : 0.0;
    double sum = 0.0;
    for (int x = from; x < to; x++) {
        double due = offer->left ? offer->left[x] : owed * offer->p[x];
        if (iid) due = specgap_positive(due - drawn * offer->q[x]);
        if (inside) due = specgap_positive(due - specgap_positive(drawn * offer->q[x] - spent * offer->p[x]));
        if (due > 0.0) {
            sum += due;
            *last = x;
            if (sum > goal) break;
        }
    }
    return sum;
}

/* Draws from what is left of what was owed. */
static int specgap_rest(struct specgap_offer *offer, double coin) {
    const struct specgap_state *state = offer->state;
    const int vocab = offer->tree->vocab;
    double total = 0.0, goal = 1e300;
    int last = -1;
    for (int turn = 0; turn < 2; turn++) {
        double sum = 0.0;
        for (int x = 0, special = 0, j = 0; x < vocab; special++) {
            int to = special < offer->specials ? offer->special[special] : vocab;
            while (j < state->strata && x > state->part[j].stop) j++;
            sum += specgap_left(offer, x, to, j < state->strata && x > state->part[j].start ? j : -1, goal - sum, &last);
            if (sum > goal) return last;
            if (to < vocab && offer->due[special] > 0.0) {
                sum += offer->due[special];
                last = to;
            }
            if (sum > goal) return last;
            x = to + 1;
        }
        total = sum;
        goal = coin * total;
        if (!(total > 0.0)) return specgap_draw(offer->p, vocab, coin);
    }
    return last;
}

/* Offers a weight to a row. Returns the row that is kept, -100 if the offer is refused, or an error. */
static int specgap_ask(const struct specgap_tree *tree, int row, double weight, int *token) {
    static const double four[4] = {0.8, 0.5, 0.2, 0.0};
    struct specgap_state *state = &tree->states[row];
    struct specgap_offer offer;
    int failed = state->ready ? 0 : specgap_begin(tree, row), levels = row == 0 ? tree->levels : 1;
    if (failed) return failed;
    double alive = specgap_alive(state);
    offer.tree = tree;
    offer.state = state;
    offer.p = tree->p[row];
    offer.q = state->children > 0 ? tree->q[row] : 0;
    offer.owed = weight * alive;
    offer.paid = offer.drawn = 0.0;
    offer.specials = 0;
    offer.left = offer.laws = 0;
    for (int i = 0; i < state->sure; i++) specgap_mark(&offer, state->certain[i]);
    for (int j = 0; j < state->strata && state->part[j].start >= 0; j++) {
        specgap_mark(&offer, state->part[j].start);
        specgap_mark(&offer, state->part[j].stop);
    }
    if (levels > 1 && state->strata > 0) {
        offer.left = tree->scratch;
        offer.laws = tree->scratch + tree->vocab;
        const double owed = offer.owed * state->p_scale;
        for (int x = 0; x < tree->vocab; x++) offer.left[x] = owed * offer.p[x];
        for (int j = 0; j < state->strata; j++)
            for (int x = state->part[j].start; x <= state->part[j].stop; x++) offer.laws[j + x] = offer.q[x] * state->scale;
        for (int i = 0; i < state->sure; i++)
            for (int j = 0; j < state->strata; j++) {
                int x = state->certain[i];
                if (x > state->part[j].start && x < state->part[j].stop) offer.laws[j + x] = 0.0;
            }
    }
    for (int turn = 0; turn < levels; turn++) {
        double level = four[4 - levels + turn];
        for (int i = 0; i < state->strata; i++) {
            int j = tree->law == SPECGAP_IID ? i : state->strata - 1 - i;
            int node = specgap_child(tree, row, state->sure + j);
            double chance = specgap_chance(&offer, j, level, tree->tokens[node]);
            if (chance > 0.0) {
                int kept = specgap_ask(tree, node + 1, chance, token);
                if (kept != -100) return kept;
            }
            specgap_take(&offer, j, level);
        }
    }
    alive = specgap_alive(state);
    for (int i = 0; i < state->sure; i++) {
        double *due = specgap_due(&offer, state->certain[i]), chance = specgap_share(*due, alive, 0.0);
        if (chance > 0.0) {
            int kept = specgap_ask(tree, specgap_child(tree, row, i) + 1, chance, token);
            if (kept != -100) return kept;
        }
        *due = specgap_positive(*due - chance * alive);
        offer.paid += chance * alive;
        alive *= 1.0 - chance;
    }
    if (row > 0) {
        state->refused *= 1.0 - specgap_share(specgap_positive(offer.owed - offer.paid), alive, 0.0);
        if (tree->coins[row - 1] < state->refused) return -100;
    }
    *token = offer.p ? specgap_rest(&offer, tree->coins[tree->nodes]) : -1;
    return row;
}

/* Verifies a tree. Returns how many nodes are kept, and writes them to `path` (room for the tree's depth), and the token
 * behind them; or an error. The token is -1 where the row behind the last node is NULL. */
SPECGAP_API int specgap_verify_tree(const struct specgap_tree *tree, int *path, int *token) {
    if (tree->vocab < 1 || tree->nodes < 0 || (tree->levels != 1 && tree->levels != 4)) return SPECGAP_BAD_ARGUMENT;
    if (tree->levels == 4 && (!tree->scratch || tree->law == SPECGAP_IID)) return SPECGAP_BAD_ARGUMENT;
    for (int row = 0; row <= tree->nodes; row++) {
        tree->states[row].ready = tree->states[row].children = 0;
        tree->states[row].refused = 1.0;
    }
    for (int i = 0; i < tree->nodes; i++) {
        int row = tree->parents[i];
        if (row < 0 || row > i || tree->states[row].children == SPECGAP_MOST) return SPECGAP_BAD_ARGUMENT;
        if (tree->tokens[i] < 0 || tree->tokens[i] >= tree->vocab) return SPECGAP_BAD_DRAFT;
        tree->states[row].children++;
    }
    int next = -1, kept = 0, row = specgap_ask(tree, 0, 1.0, &next);
    if (row < 0) return row;
    if (next < -1) return next;
    for (int up = row; up > 0; up = tree->parents[up - 1]) kept++;
    for (int up = row, i = kept; up > 0; up = tree->parents[up - 1]) path[--i] = up - 1;
    *token = next;
    return kept;
}

/* The round of an age began that many tokens ago. Over the text's probability: that it drafted, and keeps, these. */
struct specgap_age {
    double drafted, kept;
};

/* A drafted chain of a text whose rounds carry on: `carried-block`. Row k + 1 is behind draft k. Whether a token may be
 * drafted depends on the text before it alone: a chain shorter than `most` ends before one that no round drafts. */
struct specgap_chain {
    int vocab, drafts, most; /* of the text: the most drafts of a round, up to SPECGAP_MOST */
    const float *const *p;   /* [1 + drafts] */
    const float *const *q;   /* [1 + drafts]; the last is NULL where no round drafts that token, as the text's last */
    const int *tokens;
    const double *coins;      /* [1 + drafts], even in [0, 1) */
    struct specgap_age *ages; /* [1 + most], of the text; as they were where the call is refused */
    double *scratch;          /* [SPECGAP_SCRATCH(vocab)] */
};

/* What ages give out of a row: many times min(q, p / weight), and a share of what more they may. */
struct specgap_gifts {
    double p_scale, q_scale, weight, all;
    double many[SPECGAP_MOST], share[SPECGAP_MOST], sum[SPECGAP_MOST];
};

static double specgap_total(const double *values, int count) {
    double sums[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    int x = 0;
    for (; x + 8 <= count; x += 8)
        for (int i = 0; i < 8; i++) sums[i] += values[x + i];
    for (; x < count; x++) sums[x & 7] += values[x];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* What an age may give besides, and in `left` what is left of p: a share of that is taken off. Returns its sum. */
static double specgap_room(const float *SPECGAP_ALONE q, int vocab, double drafted, double many, double share,
                           const double *SPECGAP_ALONE even, double *SPECGAP_ALONE left) {
    double sums[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    int x = 0;
    for (; x + 8 <= vocab; x += 8)
        for (int i = 0; i < 8; i++) {
            double room = drafted * q[x + i] - many * even[x + i], rest = left[x + i];
            room = room > 0.0 ? room : 0.0;
            room = room < rest ? room : rest;
            left[x + i] = rest - share * room;
            sums[i] += room;
        }
    for (; x < vocab; x++) {
        double room = specgap_positive(drafted * q[x] - many * even[x]);
        room = room < left[x] ? room : left[x];
        left[x] -= share * room;
        sums[x & 7] += room;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* Gives out row k. What is left of p is in the scratch then. */
static int specgap_give(const struct specgap_chain *chain, int k, const struct specgap_age *ages, struct specgap_gifts *gifts) {
    const int vocab = chain->vocab, most = chain->most;
    const float *p = chain->p[k], *q = chain->q[k];
    double p_sum = specgap_sum(p, vocab), q_sum = q ? specgap_sum(q, vocab) : 1.0;
    double *SPECGAP_ALONE left = chain->scratch, *SPECGAP_ALONE even = chain->scratch + vocab;
    if (!(p_sum > 0.0) || !(q_sum > 0.0)) return SPECGAP_BAD_ROW;
    gifts->p_scale = 1.0 / p_sum;
    gifts->q_scale = q ? 1.0 / q_sum : 0.0;
    gifts->weight = gifts->all = 0.0;
    for (int j = 0; j < most; j++) {
        gifts->many[j] = gifts->share[j] = gifts->sum[j] = 0.0;
        gifts->weight += ages[j].drafted * (most - j) / most;
    }
    for (int x = 0; x < vocab; x++) left[x] = p[x] * gifts->p_scale;
    if (!q || !(gifts->weight > 0.0)) return 0;
    const double over = 1.0 / gifts->weight;
    for (int x = 0; x < vocab; x++) {
        double drafted = q[x] * gifts->q_scale, most_even = left[x] * over;
        even[x] = most_even < drafted ? most_even : drafted;
    }
    const double sum = specgap_total(even, vocab);
    for (int j = 0; j < most; j++) {
        double wanted = ages[j].drafted * (most - j) / most;
        /* A sum that is over by rounding alone leaves nothing of p where q has all of it. */
        gifts->many[j] = wanted * sum > ages[j].kept * (1.0 + 1e-12) ? ages[j].kept / sum : wanted;
        gifts->all += gifts->many[j];
    }
    for (int x = 0; x < vocab; x++) left[x] = specgap_positive(left[x] - gifts->all * even[x]);
    for (int j = 0; j < most; j++) {
        double own = gifts->many[j] * sum, more = ages[j].kept - own, drafted = ages[j].drafted * gifts->q_scale;
        gifts->sum[j] = own;
        if (!(more > 0.0)) continue;
        double room = specgap_room(q, vocab, drafted, gifts->many[j], 0.0, even, left);
        if (!(room > 0.0)) continue;
        gifts->share[j] = more < room ? more / room : 1.0;
        gifts->sum[j] += gifts->share[j] * room;
        specgap_room(q, vocab, drafted, gifts->many[j], gifts->share[j], even, left);
    }
    return 0;
}

/* The ages behind token x of row k. */
static void specgap_older(const struct specgap_chain *chain, int k, const struct specgap_age *ages,
                          const struct specgap_gifts *gifts, int x, struct specgap_age *older) {
    double p = chain->p[k][x] * gifts->p_scale, q = chain->q[k] ? chain->q[k][x] * gifts->q_scale : 0.0, start = 1.0;
    double even = gifts->weight * q > p ? p / gifts->weight : q, left = specgap_positive(p - gifts->all * even);
    for (int j = 0; j < chain->most; j++) {
        double own = gifts->many[j] * even, room = specgap_positive(ages[j].drafted * q - own);
        double alone = (room < left ? room : left) * gifts->share[j], drafted = p > 0.0 ? ages[j].drafted * (q / p) : 0.0;
        left -= alone;
        older[j + 1].drafted = drafted < 1e100 ? drafted : 1e100;
        older[j + 1].kept = p > 0.0 ? (own + alone) / p : 0.0;
        start -= older[j + 1].kept;
    }
    older[0].drafted = older[0].kept = specgap_positive(start);
}

/* Before a text's first round. ages [1 + most]. */
SPECGAP_API void specgap_begin_text(struct specgap_age *ages, int most) {
    for (int j = 0; j <= most; j++) ages[j].drafted = ages[j].kept = j == 0 ? 1.0 : 0.0;
}

/* Verifies a chain. Returns how many drafts are kept, and writes the token behind them and the ages behind it; or an
 * error. From the last draft on it stops at one whose coin is below the chance to stop there. */
SPECGAP_API int specgap_verify_chain(const struct specgap_chain *chain, int *token) {
    struct specgap_age ages[SPECGAP_MOST + 1][SPECGAP_MOST + 1], *node;
    struct specgap_gifts gifts;
    double behind[SPECGAP_MOST + 1], sum = 0.0;
    const int vocab = chain->vocab, drafts = chain->drafts, most = chain->most;
    int kept = drafts, next = -1;
    if (vocab < 1 || most < 1 || most > SPECGAP_MOST || drafts < 0 || drafts > most) return SPECGAP_BAD_ARGUMENT;
    if (drafts < most && chain->q[drafts]) return SPECGAP_BAD_ARGUMENT;
    for (int j = 0; j <= most; j++) ages[0][j] = chain->ages[j];
    for (int k = 0; k <= drafts; k++) {
        int failed = specgap_give(chain, k, ages[k], &gifts);
        if (failed) return failed;
        behind[k] = k < most ? gifts.sum[k] : 0.0;
        if (k == drafts) break;
        int x = chain->tokens[k];
        if (!chain->q[k] || x < 0 || x >= vocab || !(chain->q[k][x] > 0.0f)) return SPECGAP_BAD_DRAFT;
        specgap_older(chain, k, ages[k], &gifts, x, ages[k + 1]);
    }
    for (; kept > 0; kept--) {
        node = &ages[kept][kept];
        /* By rounding alone nothing is kept. */
        double alone = node->kept - behind[kept];
        if (alone > 1e-13 && chain->coins[kept - 1] < alone / (node->drafted - behind[kept])) break;
    }
    if (kept < drafts) specgap_give(chain, kept, ages[kept], &gifts);
    const double goal = chain->coins[drafts] * specgap_total(chain->scratch, vocab);
    for (int x = 0; x < vocab; x++) {
        if (!(chain->scratch[x] > 0.0)) continue;
        next = x;
        sum += chain->scratch[x];
        if (sum > goal) break;
    }
    if (next < 0) next = specgap_draw(chain->p[kept], vocab, chain->coins[drafts]);
    specgap_older(chain, kept, ages[kept], &gifts, next, chain->ages);
    *token = next;
    return kept;
}

#endif
