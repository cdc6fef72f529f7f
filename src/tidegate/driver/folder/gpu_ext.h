/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The hooks of gpu_ext (github.com/eunomia-bpf/gpu_ext, the third form of its struct gpu_mem_ops),
 * a build of NVIDIA's open driver that calls BPF programs. Names and signatures are that driver's;
 * the loader finds its types by BTF. Never run on a GPU.
 *
 * A hook of eviction may put the block that arrives at an end of one of two lists. The policy sees
 * frames in place of regions: a frame holds one region at a time, and one that is activated again
 * holds another than before.
 */
#define DEFAULT 0 /* the driver goes on as it would without a policy */
#define DECIDED 1
#define ASK_EACH_NODE 2
#define FRAME_BITS 21

struct uvm_gpu_chunk_struct {
	u64 address; /* in the GPU's memory */
} __attribute__((preserve_access_index));
typedef struct {
	u16 first, outer;
} __attribute__((preserve_access_index)) uvm_va_block_region_t;
typedef struct uvm_bpf_pmm_decision_ctx uvm_bpf_pmm_decision_ctx_t;
typedef struct uvm_bpf_prefetch_decision uvm_bpf_prefetch_decision_t;

extern int bpf_gpu_request_reorder(uvm_bpf_pmm_decision_ctx_t *decision, u64 destination,
				   u64 position) __attribute__((weak)) SEC(".ksyms");
extern int bpf_gpu_set_prefetch_region(uvm_bpf_prefetch_decision_t *decision, u64 first, u64 outer)
	__attribute__((weak)) SEC(".ksyms");

struct gpu_mem_ops {
	int (*gpu_test_trigger)(const char *text, int length);
	int (*gpu_page_prefetch)(u16 page, void *tree, uvm_va_block_region_t *most,
				 uvm_bpf_prefetch_decision_t *decision);
	int (*gpu_page_prefetch_iter)(void *tree, uvm_va_block_region_t *most,
				      uvm_va_block_region_t *node, unsigned int occupied,
				      uvm_bpf_prefetch_decision_t *decision);
	int (*gpu_block_activate)(void *pmm, struct uvm_gpu_chunk_struct *chunk,
				  uvm_bpf_pmm_decision_ctx_t *decision);
	int (*gpu_block_access)(void *pmm, struct uvm_gpu_chunk_struct *chunk,
				uvm_bpf_pmm_decision_ctx_t *decision);
	int (*gpu_evict_prepare)(void *pmm, void *used, void *unused);
};

#ifdef STEERED
enum { USED = 1, UNUSED = 2 };
enum { HEAD = 1, TAIL = 2 };

SEC("struct_ops/gpu_block_activate") int activate(u64 *arguments)
{
	struct uvm_gpu_chunk_struct *chunk = (void *)arguments[1];
	uvm_bpf_pmm_decision_ctx_t *decision = (void *)arguments[2];
	s64 frame = chunk->address >> FRAME_BITS;
	s64 used;

	if (failed || frame < 0 || frame >= REGIONS)
		return DEFAULT;
	if (policy_s_used_has(0, frame) || policy_s_unused_has(0, frame))
		policy_on_eviction(frame);
	policy_on_fault(frame);
	if (failed)
		return DEFAULT;
	used = policy_s_used_has(0, frame);
	if (used)
		bpf_gpu_request_reorder(decision, USED,
					policy_s_used_tail(0) == frame ? TAIL : HEAD);
	else
		bpf_gpu_request_reorder(decision, UNUSED,
					policy_s_unused_tail(0) == frame ? TAIL : HEAD);
	return DEFAULT; /* a request of this hook is granted whatever it returns */
}

SEC(".struct_ops") struct gpu_mem_ops hooks = {
	.gpu_block_activate = (void *)activate,
};
#endif

#ifdef THRESHOLD
SEC("struct_ops/gpu_page_prefetch") int prefetch(u64 *arguments)
{
	uvm_va_block_region_t *most = (void *)arguments[2];
	uvm_bpf_prefetch_decision_t *decision = (void *)arguments[3];

	if (THRESHOLD > 100) {
		bpf_gpu_set_prefetch_region(decision, 0, 0);
		return DECIDED;
	}
	if (THRESHOLD <= 1) {
		bpf_gpu_set_prefetch_region(decision, most->first, most->outer);
		return DECIDED;
	}
	return ASK_EACH_NODE;
}

SEC("struct_ops/gpu_page_prefetch_iter") int prefetch_node(u64 *arguments)
{
	uvm_va_block_region_t *node = (void *)arguments[2];
	u64 occupied = (u32)arguments[3];
	uvm_bpf_prefetch_decision_t *decision = (void *)arguments[4];
	u64 first = node->first, outer = node->outer;

	if (occupied * 100 <= (outer - first) * THRESHOLD)
		return DEFAULT;
	bpf_gpu_set_prefetch_region(decision, first, outer);
	return DECIDED;
}

SEC(".struct_ops") struct gpu_mem_ops hooks = {
	.gpu_page_prefetch = (void *)prefetch,
	.gpu_page_prefetch_iter = (void *)prefetch_node,
};
#endif
