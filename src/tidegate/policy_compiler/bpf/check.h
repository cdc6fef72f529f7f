/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Plays a tape of events to the policy and keeps its answers: a tape in one call, or an event a
 * call, as a program of the kernel's own bpf_dummy_ops, whose form is that of a driver's hooks.
 */
#define MAP_ARRAY 2
#define field(name, number) int(*name)[number]
#define kind(name, what) typeof(what) *name

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const clock_ns)(void) = (void *)5;

/* what a row sets, from FIRST_SHOWN on, in place of calling the policy; driver/tape.py */
enum {
	FIRST_SHOWN = 16,
	SET_RESIDENT = FIRST_SHOWN,
	SET_SERVED,
	SET_OBSERVED,
	SET_LAST_TOUCH,
	SET_TOUCH_COUNT,
	SET_FAULTED,
	SET_NOW,
	SET_ACCESSES,
	SET_RESIDENT_LEN,
};

struct row {
	u32 event, region;
	s64 value;
};

#define MOST_ROWS (1 << 18)
struct {
	field(type, MAP_ARRAY);
	field(max_entries, 1);
	kind(key, u32);
	kind(value, struct row[MOST_ROWS]);
} tape SEC(".maps");
struct {
	field(type, MAP_ARRAY);
	field(max_entries, 1);
	kind(key, u32);
	kind(value, s64[MOST_ROWS]);
} answers SEC(".maps");
struct {
	field(type, MAP_ARRAY);
	field(max_entries, 1);
	kind(key, u32);
	kind(value, struct request[MOST_ROWS]);
} asked SEC(".maps");
struct {
	field(type, MAP_ARRAY);
	field(max_entries, 1);
	kind(key, u32);
	kind(value, u32[MOST_ROWS]);
} took_ns SEC(".maps");

FUNCTION s64 show(s64 what, s64 region, s64 value)
{
	u64 at = entry_of(region);

	switch (what) {
	case SET_RESIDENT:
		shown_resident[at] = value;
		break;
	case SET_SERVED:
		shown_served[at] = value;
		break;
	case SET_OBSERVED:
		shown_observed[at] = value;
		break;
	case SET_LAST_TOUCH:
		shown_last_touch[at] = value;
		break;
	case SET_TOUCH_COUNT:
		shown_touch_count[at] = value;
		break;
	case SET_FAULTED:
		shown_faulted[at] = value;
		break;
	case SET_NOW:
		shown_now = value;
		break;
	case SET_ACCESSES:
		shown_accesses = value;
		break;
	case SET_RESIDENT_LEN:
		shown_resident_len = value;
		break;
	}
	return 0;
}

/* Append what the last call requested to `asked`, where `at` rows are. */
FUNCTION s64 keep_requests(s64 at)
{
	u32 zero = 0;
	struct request *kept = map_lookup(&asked, &zero);
	s64 i;

	if (!kept)
		return fail(__LINE__);
	LOOP(i, MOST_REQUESTS) {
		u64 to = at + i, from = i;

		if (i >= request_n)
			break;
		HIDE(to);
		HIDE(from);
		if (to >= MOST_ROWS || from >= MOST_REQUESTS)
			return fail(__LINE__);
		kept[to] = requests[from];
	}
	i = request_n;
	request_n = 0;
	return i;
}

struct batch {
	u64 rows, timed; /* in; timed: note what each call took, which makes all a little slower */
	u64 ns, asked;
	s64 failed;
};

SEC("syscall") int play(struct batch *batch)
{
	u32 zero = 0;
	struct row *row = map_lookup(&tape, &zero);
	s64 *answer = map_lookup(&answers, &zero);
	u32 *took = map_lookup(&took_ns, &zero);
	u64 rows = batch->rows, timed = batch->timed, begin = clock_ns(), before = 0;
	s64 i, kept = 0;

	if (!row || !answer || !took)
		return 1;
	LOOP(i, MOST_ROWS) {
		u64 at = i;

		HIDE(at);
		if (at >= rows || at >= MOST_ROWS)
			break;
		if (row[at].event >= FIRST_SHOWN) {
			show(row[at].event, row[at].region, row[at].value);
			continue;
		}
		if (timed)
			before = clock_ns();
		answer[at] = policy_call(row[at].event, row[at].region);
		if (timed)
			took[at] = clock_ns() - before;
		if (request_n)
			kept += keep_requests(kept);
	}
	batch->ns = clock_ns() - begin;
	batch->asked = kept;
	batch->failed = failed;
	return 0;
}

struct one {
	u64 event, region;
	s64 answer;
};

/* One call, whose instructions are the policy's. */
SEC("syscall") int call(struct one *one)
{
	one->answer = policy_call(one->event, one->region);
	return 0;
}

#ifdef DUMMY_OPS
struct bpf_dummy_ops_state {
	int val;
} __attribute__((preserve_access_index));
struct bpf_dummy_ops {
	int (*test_1)(struct bpf_dummy_ops_state *state);
	int (*test_2)(struct bpf_dummy_ops_state *state, int a1, u16 a2, char a3, unsigned long a4);
	int (*test_sleepable)(struct bpf_dummy_ops_state *state);
};

SEC("struct_ops/test_2") int hook(u64 *arguments)
{
	struct bpf_dummy_ops_state *state = (void *)arguments[0];
	s64 event = (u16)arguments[2], region = (int)arguments[1], value = arguments[4];

	if (event >= FIRST_SHOWN)
		show(event, region, value);
	else
		state->val = policy_call(event, region);
	request_n = 0;
	return 0;
}

SEC(".struct_ops") struct bpf_dummy_ops policy_hooks = {
	.test_2 = (void *)hook,
};
#endif
