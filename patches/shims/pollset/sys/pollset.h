/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

   AIX's pollset for Linux, to try programs for AIX where no AIX is at hand. See README.md. */

#ifndef POLLSET_SHIM_H
#define POLLSET_SHIM_H

#include <poll.h>

#ifdef __cplusplus
extern "C"
{
#endif

#define PS_ADD 0
#define PS_MOD 1
#define PS_DELETE 2

/* Not a descriptor: the first pollset is 0, and close() must never see it. */
typedef int pollset_t;

struct poll_ctl
{
  short cmd;
  short events;
  int fd;
};

pollset_t pollset_create(int maxfd);
int pollset_destroy(pollset_t ps);
int pollset_ctl(pollset_t ps, struct poll_ctl *pollctl_array, int array_length);
int pollset_query(pollset_t ps, struct pollfd *pollfd_query);
int pollset_poll(pollset_t ps, struct pollfd *polldata_array, int array_length, int timeout);

/* Of the shim alone: how many pollsets this process has created and not destroyed. */
int pollset_shim_alive(void);

#ifdef __cplusplus
}
#endif

#endif
