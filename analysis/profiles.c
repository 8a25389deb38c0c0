// SPDX-License-Identifier: GPL-3.0-or-later
/* Profiles by name (built in, see profiles.S) or by path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "model/counts.h"
#include "model/host/cache.h"
#include "model/params.h"
#include "model/sim/profile.h"

#define PROFILE(symbol, name, path)                                                                \
	extern const char profile_text_##symbol[], profile_text_##symbol##_end[];
#include "analysis/profiles.def"
#undef PROFILE

const char *const cli_profile_names[] = {
#define PROFILE(symbol, name, path) name,
#include "analysis/profiles.def"
#undef PROFILE
	NULL,
};

static const struct {
	const char *text, *end;
} texts[] = {
#define PROFILE(symbol, name, path) {profile_text_##symbol, profile_text_##symbol##_end},
#include "analysis/profiles.def"
#undef PROFILE
};

/* A profile may state part of what a run needs: that is known before one begins. */
static int check_use(const struct profile *p)
{
	struct cache *cache;
	int err;

	if (!profile_unit(p))
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE,
				  "%s: [machine] states no unit (cycles or instructions)",
				  profile_name(p));
	err = cache_create(p, &cli_errors, &cache);
	cache_destroy(cache);
	return err == KVMSIM_EINVAL ? KVMSIM_EPARSE : err;
}

static int from_file(const char *path, struct profile **out)
{
	char *text;
	size_t len;
	int err = cli_read_file(path, &text, &len);

	if (err)
		return err;
	err = profile_parse(text, len, path, &model_vocabulary, model_params, &cli_errors, out);
	free(text);
	err = err ? err : check_use(*out);
	if (err) {
		profile_free(*out);
		*out = NULL;
	}
	return err;
}

int cli_profile(const char *name, struct profile **out)
{
	size_t len = strlen(name);
	char names[512] = "";

	*out = NULL;
	if (strchr(name, '/') || (len > 4 && !strcmp(name + len - 4, ".ini")))
		return from_file(name, out);
	for (size_t i = 0; cli_profile_names[i]; i++) {
		if (!strcmp(cli_profile_names[i], name))
			return profile_parse(texts[i].text, (size_t)(texts[i].end - texts[i].text),
					     name, &model_vocabulary, model_params, &cli_errors,
					     out);
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			 cli_profile_names[i]);
	}
	return kvmsim_err(&cli_errors, KVMSIM_ENOENT,
			  "no profile '%s'; there are %s, or a file by its path", name, names);
}
