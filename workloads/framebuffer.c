// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A screen in device memory, drawn by the CPU: rectangles are filled row by row, so that the dirty
 * pages of a round are clustered. The sizes follow the x11perf runs of November 2010 in a slot of
 * 4,096 pages (T. Yoshikawa, Re: [PATCH-v2 0/4] KVM: dirty logging optimization, 25 Nov 2010):
 * 1024x768 at packed 24 bits per pixel is 576 pages, the largest count of its table.
 */
#include <inttypes.h>

#include "model/sim/rng.h"
#include "workloads/scenario.h"

enum { WIDTH, HEIGHT, PIXEL, RECTS, SIDE };

static const struct workload_param params[] = {
	[WIDTH] = {"width", 1024, 1, 16384, "pixels in a row of the screen"},
	[HEIGHT] = {"height", 768, 1, 16384, "rows of the screen"},
	[PIXEL] = {"pixel_bytes", 3, 1, 4, "bytes per pixel"},
	[RECTS] = {"rects", 40, 1, 100000, "most rectangles drawn in a round by all vCPUs"},
	[SIDE] = {"side", 100, 1, 16384, "longest side of a rectangle, in pixels"},
	{.name = NULL},
};

static int check(const struct scenario *s, const struct kvmsim_errsink *errors)
{
	uint64_t bytes = s->param[WIDTH] * s->param[HEIGHT] * s->param[PIXEL];
	const struct scenario_slot *slot = &s->slots[s->target];

	if ((bytes + 4095) / 4096 > slot->npages)
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: the screen needs %" PRIu64 " pages, slot %s has %" PRIu64,
				  s->name, (bytes + 4095) / 4096, slot->name, slot->npages);

	uint64_t rows = s->param[SIDE] < s->param[HEIGHT] ? s->param[SIDE] : s->param[HEIGHT];
	uint64_t pixels = s->param[SIDE] < s->param[WIDTH] ? s->param[SIDE] : s->param[WIDTH];

	/* a row of n bytes lies in up to n / 4096 + 2 pages */
	return scenario_check_round(
		s, s->param[RECTS] * rows * (pixels * s->param[PIXEL] / 4096 + 2), errors);
}

static void fill(const struct scenario *s, struct rng *rng, struct round_ops *out)
{
	uint64_t width = s->param[WIDTH], height = s->param[HEIGHT], pixel = s->param[PIXEL];
	uint64_t side_x = s->param[SIDE] < width ? s->param[SIDE] : width;
	uint64_t side_y = s->param[SIDE] < height ? s->param[SIDE] : height;
	uint64_t w = 1 + rng_below(rng, side_x), h = 1 + rng_below(rng, side_y);
	uint64_t x = rng_below(rng, width - w + 1), y = rng_below(rng, height - h + 1);

	for (uint64_t row = y; row < y + h; row++) {
		uint64_t first = (row * width + x) * pixel;
		uint64_t last = (row * width + x + w) * pixel - 1;

		/* one store stands for all of a row's in one page */
		for (uint64_t at = first; at <= last; at = (at | 4095) + 1)
			round_access(out, OP_WRITE, at, 1);
	}
}

static void draw(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
		 struct rng *common, struct round_ops *out)
{
	(void)round;
	(void)common;
	uint64_t share = s->param[RECTS] / s->n_vcpus + (vcpu < s->param[RECTS] % s->n_vcpus);
	uint64_t n = share ? 1 + rng_below(rng, share) : 0;

	for (uint64_t i = 0; i < n; i++)
		fill(s, rng, out);
}

const struct workload workload_framebuffer = {
	.name = "framebuffer",
	.summary = "rectangles drawn into a screen in device memory: clustered dirty pages",
	.params = params,
	.check = check,
	.round = draw,
};
