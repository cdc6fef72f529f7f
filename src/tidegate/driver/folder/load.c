/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Load a policy: ./load FILE.o has the kernel's verifier read it; ./load FILE.o attach also gives
 * its hooks to the driver, until Ctrl-C.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void stop(int signal)
{
	(void)signal; /* pause() returns */
}

static int attach(struct bpf_object *object)
{
	struct bpf_map *hooks = bpf_object__find_map_by_name(object, "hooks");
	struct bpf_link *link;
	struct sigaction on_stop = { .sa_handler = stop };

	if (!hooks) {
		fprintf(stderr, "load: this object has no hooks; build it with `make hooks`\n");
		return 1;
	}
	link = bpf_map__attach_struct_ops(hooks);
	if (!link) {
		fprintf(stderr, "load: the driver does not take the hooks: %s\n", strerror(errno));
		return 1;
	}
	sigaction(SIGINT, &on_stop, NULL);
	sigaction(SIGTERM, &on_stop, NULL);
	printf("attached; Ctrl-C takes it away\n");
	fflush(stdout);
	pause();
	bpf_link__destroy(link);
	printf("detached: the driver decides again\n");
	return 0;
}

int main(int count, char **arguments)
{
	struct bpf_object *object;
	struct bpf_program *program;
	int result = 0;

	if (count < 2 || count > 3 || (count == 3 && strcmp(arguments[2], "attach"))) {
		fprintf(stderr, "usage: %s FILE.o [attach]\n", arguments[0]);
		return 2;
	}
	object = bpf_object__open_file(arguments[1], NULL);
	if (!object) {
		fprintf(stderr, "load: cannot open %s: %s\n", arguments[1], strerror(errno));
		return 1;
	}
	if (bpf_object__load(object)) {
		fprintf(stderr, "load: the kernel does not take %s; its words are above\n",
			arguments[1]);
		bpf_object__close(object);
		return 1;
	}
	bpf_object__for_each_program(program, object)
		printf("verified: %s, %zu instructions\n", bpf_program__name(program),
		       bpf_program__insn_cnt(program));
	if (count == 3)
		result = attach(object);
	bpf_object__close(object);
	return result;
}
