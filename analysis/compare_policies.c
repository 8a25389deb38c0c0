// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"

int compare_split_policies(const char *text, char ***out, size_t *n)
{
	char **list = calloc(strlen(text) + 1, sizeof(*list)); /* more than there can be */
	int err = list ? 0 : KVMSIM_ENOMEM;
	size_t k = 0;

	while (!err) {
		size_t len = strcspn(text, ",");
		bool param = memchr(text, '=', len);

		if (!len || (param && !k)) {
			err = KVMSIM_EINVAL;
		} else if (param) {
			size_t had = strlen(list[k - 1]);
			char *grown = realloc(list[k - 1], had + len + 2);

			if (grown) {
				grown[had] = ',';
				memcpy(grown + had + 1, text, len);
				grown[had + len + 1] = '\0';
				list[k - 1] = grown;
			} else {
				err = KVMSIM_ENOMEM;
			}
		} else if (!(list[k] = strndup(text, len))) {
			err = KVMSIM_ENOMEM;
		} else {
			k++;
		}
		if (!text[len])
			break;
		text += len + 1;
	}
	if (err) {
		compare_free_policies(list, k);
		return err;
	}
	*out = list;
	*n = k;
	return 0;
}

void compare_free_policies(char **policies, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(policies[i]);
	free(policies);
}
