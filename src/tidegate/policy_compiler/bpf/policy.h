/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What an emitted policy stands on: the structures of tidegate.policy over zeroed arrays, what a
 * driver shows it, and the requests that it leaves. The file before this one sets
 *
 *	REGIONS		how many regions there may be; their numbers begin at 0
 *	SLOTS		a power of two, more than that
 *	ROUNDS		the most rounds of a loop in one call
 *	PAGES		the pages of a region
 *
 * Entries of arrays are region + 1: entry 0 is nothing, so that zeroed memory is an empty state.
 * What Python would refuse (a region that is not there, a division by zero) ends in fail(); the
 * driver side must look at `failed` after each call, and go on without the policy if it is set.
 */
#ifndef TIDEGATE_POLICY_H
#define TIDEGATE_POLICY_H

typedef signed long long s64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
#ifndef NULL
#define NULL ((void *)0)
#endif

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define FUNCTION __attribute__((noinline))
#define NONE (-1LL)

/* Loops: the number comes from the kernel's iterator, so the verifier walks a loop once or twice. */
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)
	__attribute__((weak)) SEC(".ksyms");
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __attribute__((weak)) SEC(".ksyms");
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __attribute__((weak)) SEC(".ksyms");

INLINE void iterator_end(struct bpf_iter_num *it)
{
	bpf_iter_num_destroy(it);
}

INLINE int iterator_next(struct bpf_iter_num *it, s64 *number)
{
	int *next = bpf_iter_num_next(it);

	*number = next ? (u32)*next : 0;
	return next != NULL;
}

/* Do what follows for number = 0, 1, …, most - 1; break and continue work as usual. */
#define LOOP(number, most)                                                                       \
	for (struct bpf_iter_num loop_ __attribute__((cleanup(iterator_end))),                   \
	     *once_ = (bpf_iter_num_new(&loop_, 0, (most)), (struct bpf_iter_num *)NULL);        \
	     (void)once_, iterator_next(&loop_, &(number));)

/* The compiler must not know where a number comes from, or it drops the check that the verifier
 * wants to see. */
#define HIDE(number) asm volatile("" : "+r"(number))

s64 failed; /* the line of this file or of the policy's where the first failure was */

INLINE s64 fail(s64 line)
{
	if (!failed)
		failed = line;
	return NONE;
}

/* Return a number through memory, so that the verifier does not know it. A count that it knows
 * makes every round of a loop another one, which it follows until it gives up. */
volatile s64 passing;
INLINE s64 unknown(s64 number)
{
	passing = number;
	return passing;
}

/* Return the entry of a region, 0 of none. */
INLINE u64 entry_of(s64 region)
{
	u64 entry = (u64)region + 1;

	HIDE(entry);
	return entry > REGIONS ? 0 : entry;
}

/* Return an entry that was read from an array, so that the verifier knows its range; without a
 * branch, as each would double the paths through a loop. */
INLINE u64 entry(u64 number)
{
	HIDE(number);
	return number & (SLOTS - 1);
}

INLINE u64 index_of(s64 number, u64 count)
{
	u64 index = (u64)number;

	HIDE(index);
	return index < count ? index : 0;
}

/* Arithmetic: Python rounds down and lets a remainder have the divisor's sign. */
FUNCTION s64 floor_divide(s64 a, s64 b)
{
	u64 size_a = a < 0 ? -(u64)a : (u64)a, size_b = b < 0 ? -(u64)b : (u64)b;
	s64 size;

	if (!b)
		return fail(__LINE__);
	size = (s64)(size_a / size_b);
	if ((a < 0) == (b < 0))
		return size;
	return -size - (size_a % size_b != 0);
}

INLINE s64 remainder(s64 a, s64 b)
{
	return b ? a - floor_divide(a, b) * b : fail(__LINE__);
}

INLINE s64 smaller(s64 a, s64 b)
{
	return a < b ? a : b;
}

INLINE s64 larger(s64 a, s64 b)
{
	return a > b ? a : b;
}

INLINE s64 absolute(s64 a)
{
	return a < 0 ? -a : a;
}

/* Return the fraction mantissa / 2^shift times a number, rounded as a product of two doubles is,
 * and then down, or up. mantissa < 2^53; the number's size is less than 2^53. */
FUNCTION s64 times_fraction(s64 number, u64 mantissa, u64 shift, s64 up)
{
	u64 n = number < 0 ? -(u64)number : (u64)number;
	u64 low = (n & 0xffffffff) * (mantissa & 0xffffffff);
	u64 one = (n >> 32) * (mantissa & 0xffffffff), other = (n & 0xffffffff) * (mantissa >> 32);
	u64 middle = (low >> 32) + (one & 0xffffffff) + (other & 0xffffffff);
	u64 high = (n >> 32) * (mantissa >> 32) + (one >> 32) + (other >> 32) + (middle >> 32);
	u64 lost, half, whole;
	s64 i, cut = 0;

	low = (low & 0xffffffff) | middle << 32;
	if (n >> 53 || shift > 1100)
		return fail(__LINE__);
	/* to 53 bits, nearest, ties to even: `cut` bits go */
	half = high;
	whole = low;
	LOOP(i, 64) {
		if (!half && !(whole >> 53))
			break;
		whole = whole >> 1 | half << 63;
		half >>= 1;
		cut = i + 1;
	}
	if (cut) {
		lost = cut > 63 ? low : low & ((1ULL << (cut & 63)) - 1);
		half = 1ULL << ((cut - 1) & 63);
		if (lost > half || (lost == half && (whole & 1)))
			whole++;
	}
	/* whole · 2^(cut - shift) */
	if (cut >= (s64)shift)
		return number < 0 ? -(s64)(whole << ((cut - shift) & 63))
				  : (s64)(whole << ((cut - shift) & 63));
	cut = shift - cut;
	lost = cut > 63 ? whole : whole & ((1ULL << (cut & 63)) - 1);
	whole = cut > 63 ? 0 : whole >> (cut & 63);
	if (lost && (up != 0) == (number >= 0))
		whole++;
	return number < 0 ? -(s64)whole : (s64)whole;
}

/* What a driver shows: it writes these before it calls. */
#define SHOWN_BY_REGION(type, name)                                                              \
	type name[SLOTS];                                                                        \
	INLINE s64 name##_of(s64 region)                                                         \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		return at ? (s64)name[at] : fail(__LINE__);                                      \
	}
SHOWN_BY_REGION(u8, shown_resident)
SHOWN_BY_REGION(u8, shown_served)
SHOWN_BY_REGION(u8, shown_observed)
SHOWN_BY_REGION(s64, shown_last_touch)
SHOWN_BY_REGION(s64, shown_touch_count)
SHOWN_BY_REGION(u64, shown_faulted) /* a bit for each page */
s64 shown_now, shown_accesses, shown_resident_len;

FUNCTION s64 faulted_len(s64 region)
{
	u64 pages = shown_faulted_of(region);
	s64 i, count = 0;

	LOOP(i, 64) {
		if (!pages)
			break;
		pages &= pages - 1;
		count++;
	}
	return count;
}

/* What a policy requests: the driver executes the rows when the call has returned. */
#define MOST_REQUESTS 4096
struct request {
	s64 verb, a, b, c;
};
struct request requests[MOST_REQUESTS];
u32 request_n;

FUNCTION s64 ask(s64 verb, s64 a, s64 b, s64 c)
{
	u64 at = request_n;

	HIDE(at);
	if (at >= MOST_REQUESTS)
		return fail(__LINE__);
	requests[at] = (struct request){ verb, a, b, c };
	request_n = at + 1;
	return 0;
}

FUNCTION s64 ask_pages(s64 verb, s64 first, s64 pages, s64 advice)
{
	if (pages < 1 || first < 0 || first + pages > REGIONS * PAGES)
		return fail(__LINE__);
	return ask(verb, first, pages, advice);
}

FUNCTION s64 ask_region(s64 verb, s64 region, s64 resident)
{
	if (region < 0 || region >= REGIONS)
		return fail(__LINE__);
	if (resident && !shown_resident_of(region))
		return fail(__LINE__);
	return ask(verb, region, 0, 0);
}

FUNCTION s64 ask_percent(s64 verb, s64 percent, s64 most)
{
	if (percent < 0 || percent > most)
		return fail(__LINE__);
	return ask(verb, percent, 0, 0);
}

FUNCTION s64 ask_count(s64 verb, s64 accesses, s64 pages, s64 each)
{
	if (accesses < 0 || accesses > 0x7fffffff || pages < 0 || (each != 0 && each != 1))
		return fail(__LINE__);
	if (pages > REGIONS * PAGES)
		return fail(__LINE__);
	return ask(verb, accesses, pages, each);
}

/* Order and Orders: `count` lists of regions, each region in one at most. */
#define ORDERS(name, count)                                                                      \
	struct {                                                                                 \
		u32 next[SLOTS], prev[SLOTS];                                        \
		u16 list[SLOTS]; /* + 1 */                                                 \
		u32 head[count], tail[count];                                                    \
		s64 len[count];                                                                  \
	} name;                                                                                  \
	INLINE s64 name##_has(s64 list, s64 region)                                              \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		return at && name.list[at] == list + 1;                                          \
	}                                                                                        \
	INLINE s64 name##_len(s64 list)                                                          \
	{                                                                                        \
		return name.len[index_of(list, count)];                                          \
	}                                                                                        \
	INLINE s64 name##_head(s64 list)                                                         \
	{                                                                                        \
		s64 region = (s64)name.head[index_of(list, count)] - 1;                          \
		return region < 0 ? fail(__LINE__) : region;                                     \
	}                                                                                        \
	INLINE s64 name##_tail(s64 list)                                                         \
	{                                                                                        \
		s64 region = (s64)name.tail[index_of(list, count)] - 1;                          \
		return region < 0 ? fail(__LINE__) : region;                                     \
	}                                                                                        \
	INLINE s64 name##_take(u64 l, u64 at)                                                    \
	{                                                                                        \
		u64 before, after;                                                               \
		l = index_of(l, count);                                                          \
		at = entry(at);                                                                  \
		before = entry(name.prev[at]);                                                   \
		after = entry(name.next[at]);                                                    \
		if (before)                                                                      \
			name.next[before] = after;                                               \
		else                                                                             \
			name.head[l] = after;                                                    \
		if (after)                                                                       \
			name.prev[after] = before;                                               \
		else                                                                             \
			name.tail[l] = before;                                                   \
		name.list[at] = 0;                                                               \
		name.len[l]--;                                                                   \
		return 0;                                                                        \
	}                                                                                        \
	FUNCTION s64 name##_remove(s64 list, s64 region)                                         \
	{                                                                                        \
		return name##_has(list, region) ? name##_take(list, entry_of(region))            \
						: fail(__LINE__);                                \
	}                                                                                        \
	FUNCTION s64 name##_move_to_tail(s64 list, s64 region)                                   \
	{                                                                                        \
		u64 l = index_of(list, count), at = entry_of(region), last;                      \
		if (!at || (name.list[at] && name.list[at] != l + 1))                            \
			return fail(__LINE__);                                                   \
		if (name.list[at])                                                               \
			name##_take(l, at);                                                      \
		last = entry(name.tail[l]);                                                      \
		name.prev[at] = last;                                                            \
		name.next[at] = 0;                                                               \
		name.list[at] = l + 1;                                                           \
		if (last)                                                                        \
			name.next[last] = at;                                                    \
		else                                                                             \
			name.head[l] = at;                                                       \
		name.tail[l] = at;                                                               \
		name.len[l]++;                                                                   \
		return 0;                                                                        \
	}                                                                                        \
	FUNCTION s64 name##_move_to_head(s64 list, s64 region)                                   \
	{                                                                                        \
		u64 l = index_of(list, count), at = entry_of(region), first;                     \
		if (!at || (name.list[at] && name.list[at] != l + 1))                            \
			return fail(__LINE__);                                                   \
		if (name.list[at])                                                               \
			name##_take(l, at);                                                      \
		first = entry(name.head[l]);                                                     \
		name.next[at] = first;                                                           \
		name.prev[at] = 0;                                                               \
		name.list[at] = l + 1;                                                           \
		if (first)                                                                       \
			name.prev[first] = at;                                                   \
		else                                                                             \
			name.tail[l] = at;                                                       \
		name.head[l] = at;                                                               \
		name.len[l]++;                                                                   \
		return 0;                                                                        \
	}

/* Marks: a set of regions; `stamp` makes clear() one step. */
#define MARKS(name)                                                                              \
	struct {                                                                                 \
		u32 in[SLOTS], stamp; /* in it: stamp + 1 */                               \
		s64 len;                                                                         \
	} name;                                                                                  \
	INLINE s64 name##_has(s64 region)                                                        \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		return at && name.in[at] == name.stamp + 1;                                      \
	}                                                                                        \
	INLINE s64 name##_add(s64 region)                                                        \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		if (!at)                                                                         \
			return fail(__LINE__);                                                   \
		name.len += name.in[at] != name.stamp + 1;                                       \
		name.in[at] = name.stamp + 1;                                                    \
		return 0;                                                                        \
	}                                                                                        \
	INLINE s64 name##_discard(s64 region)                                                    \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		name.len -= at && name.in[at] == name.stamp + 1;                                 \
		name.in[at] = 0;                                                                 \
		return 0;                                                                        \
	}                                                                                        \
	INLINE s64 name##_remove(s64 region)                                                     \
	{                                                                                        \
		return name##_has(region) ? name##_discard(region) : fail(__LINE__);             \
	}                                                                                        \
	INLINE s64 name##_clear(void)                                                            \
	{                                                                                        \
		name.stamp++;                                                                    \
		name.len = 0;                                                                    \
		return 0;                                                                        \
	}

/* Column: a number for each region, kept as its distance from the default. */
#define COLUMN(name, default)                                                                    \
	s64 name[SLOTS];                                                                   \
	INLINE s64 name##_get(s64 region)                                                        \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		return at ? name[at] + (default) : fail(__LINE__);                               \
	}                                                                                        \
	INLINE s64 name##_set(s64 region, s64 number)                                            \
	{                                                                                        \
		u64 at = entry_of(region);                                                       \
		if (!at)                                                                         \
			return fail(__LINE__);                                                   \
		name[at] = number - (default);                                                   \
		return 0;                                                                        \
	}

/* A list of numbers, as long as start() left it; negative indices count from its end. */
#define LIST(name, count)                                                                        \
	FIXED_LIST(name, count)                                                                  \
	INLINE s64 name##_set(s64 index, s64 number)                                             \
	{                                                                                        \
		u64 at = index < 0 ? index + (count) : index;                                    \
		HIDE(at);                                                                        \
		if (at >= (count))                                                               \
			return fail(__LINE__);                                                   \
		name[at] = number;                                                               \
		return 0;                                                                        \
	}
#define FIXED_LIST(name, count)                                                                  \
	INLINE s64 name##_get(s64 index)                                                         \
	{                                                                                        \
		u64 at = index < 0 ? index + (count) : index;                                    \
		HIDE(at);                                                                        \
		return at < (count) ? name[at] : fail(__LINE__);                                 \
	}                                                                                        \
	FUNCTION s64 name##_bisect_right(s64 number)                                             \
	{                                                                                        \
		s64 i, low = 0, high = count, at;                                                \
		LOOP(i, 64) {                                                                    \
			if (low >= high)                                                         \
				break;                                                           \
			at = (low + high) >> 1;                                                  \
			if (number < name[index_of(at, count)])                                  \
				high = at;                                                       \
			else                                                                     \
				low = at + 1;                                                    \
		}                                                                                \
		return low;                                                                      \
	}

/* Heap: regions by a number, the least first, of equals the lowest region; a binary heap whose
 * entries know their places. */
#define HEAP(name)                                                                               \
	struct {                                                                                 \
		s64 number[SLOTS];                                                         \
		u32 at[SLOTS], place[SLOTS], len; /* places begin at 1 */            \
	} name;                                                                                  \
	INLINE s64 name##_has(s64 region)                                                        \
	{                                                                                        \
		u64 e = entry_of(region);                                                        \
		return e && name.place[e];                                                       \
	}                                                                                        \
	INLINE s64 name##_get(s64 region)                                                        \
	{                                                                                        \
		return name##_has(region) ? name.number[entry_of(region)] : fail(__LINE__);      \
	}                                                                                        \
	INLINE s64 name##_lowest(void)                                                           \
	{                                                                                        \
		return name.len ? (s64)entry(name.at[1]) - 1 : fail(__LINE__);                   \
	}                                                                                        \
	INLINE s64 name##_before(u64 one, u64 other)                                             \
	{                                                                                        \
		s64 a = name.number[entry(one)], b = name.number[entry(other)];                  \
		return a < b || (a == b && one < other);                                         \
	}                                                                                        \
	INLINE void name##_put(u64 place, u64 e)                                                 \
	{                                                                                        \
		place = entry(place);                                                            \
		e = entry(e);                                                                    \
		name.at[place] = e;                                                              \
		name.place[e] = place;                                                           \
	}                                                                                        \
	FUNCTION s64 name##_rise(u64 place)                                                      \
	{                                                                                        \
		u64 e = entry(name.at[entry(place)]), above;                                     \
		s64 i;                                                                           \
		LOOP(i, 32) {                                                                    \
			above = entry(name.at[entry(place >> 1)]);                               \
			if (place <= 1 || !name##_before(e, above))                              \
				break;                                                           \
			name##_put(place, above);                                                \
			place >>= 1;                                                             \
		}                                                                                \
		name##_put(place, e);                                                            \
		return place;                                                                    \
	}                                                                                        \
	FUNCTION s64 name##_sink(u64 place)                                                      \
	{                                                                                        \
		u64 e = entry(name.at[entry(place)]), below, other;                              \
		s64 i;                                                                           \
		LOOP(i, 32) {                                                                    \
			u64 next = 2 * place;                                                    \
			if (next > name.len)                                                     \
				break;                                                           \
			below = entry(name.at[entry(next)]);                                     \
			if (next < name.len) {                                                   \
				other = entry(name.at[entry(next + 1)]);                         \
				if (name##_before(other, below)) {                               \
					below = other;                                           \
					next++;                                                  \
				}                                                                \
			}                                                                        \
			if (!name##_before(below, e))                                            \
				break;                                                           \
			name##_put(place, below);                                                \
			place = next;                                                            \
		}                                                                                \
		name##_put(place, e);                                                            \
		return 0;                                                                        \
	}                                                                                        \
	FUNCTION s64 name##_set(s64 region, s64 number)                                          \
	{                                                                                        \
		u64 e = entry_of(region);                                                        \
		if (!e || number < 0)                                                            \
			return fail(__LINE__);                                                   \
		name.number[e] = number;                                                         \
		if (!name.place[e])                                                              \
			name##_put(++name.len, e);                                               \
		return name##_sink(name##_rise(name.place[e]));                                  \
	}                                                                                        \
	FUNCTION s64 name##_remove(s64 region)                                                   \
	{                                                                                        \
		u64 e = entry_of(region), place, last;                                           \
		if (!e || !name.place[e])                                                        \
			return fail(__LINE__);                                                   \
		place = name.place[e];                                                           \
		last = entry(name.at[entry(name.len)]);                                          \
		name.len--;                                                                      \
		name.place[e] = 0;                                                               \
		if (last == e)                                                                   \
			return 0;                                                                \
		name##_put(place, last);                                                         \
		return name##_sink(name##_rise(place));                                          \
	}

/* Draws: Python's generator (MT19937), a word at a time; the first `ready` words are made. */
#define DRAWS(name)                                                                              \
	FUNCTION s64 name##_word(void)                                                           \
	{                                                                                        \
		u64 at = index_of(name.at, 624), y;                                              \
		if (name.ready) {                                                                \
			name.ready--;                                                            \
		} else {                                                                         \
			y = (name.word[at] & 0x80000000) |                                       \
			    (name.word[index_of((at + 1) % 624, 624)] & 0x7fffffff);             \
			name.word[at] = name.word[index_of((at + 397) % 624, 624)] ^ (y >> 1) ^  \
					(y & 1 ? 0x9908b0df : 0);                                \
		}                                                                                \
		y = name.word[at];                                                               \
		name.at = (at + 1) % 624;                                                        \
		y ^= y >> 11;                                                                    \
		y ^= (y << 7) & 0x9d2c5680;                                                      \
		y ^= (y << 15) & 0xefc60000;                                                     \
		return y ^ y >> 18;                                                              \
	}                                                                                        \
	FUNCTION s64 name##_below(s64 limit)                                                     \
	{                                                                                        \
		s64 i, bits = 0, drawn;                                                          \
		if (limit < 1 || limit >> 32)                                                    \
			return fail(__LINE__);                                                   \
		LOOP(i, 33) {                                                                    \
			if (!(limit >> (bits & 63)))                                             \
				break;                                                           \
			bits++;                                                                  \
		}                                                                                \
		LOOP(i, 256) {                                                                   \
			drawn = (u64)name##_word() >> ((32 - bits) & 63);                        \
			if (drawn < limit)                                                       \
				return drawn;                                                    \
		}                                                                                \
		return fail(__LINE__);                                                           \
	}

#endif
