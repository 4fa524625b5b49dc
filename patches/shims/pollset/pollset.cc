/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

   AIX's pollset over level-triggered epoll. C++11. README.md says what is documented, what is assumed, and what
   makes the shim abort. */

#include "sys/pollset.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#ifndef POLLSET_SHIM_PROMISES_ONE_SHOT
#define POLLSET_SHIM_PROMISES_ONE_SHOT false
#endif

namespace
{

typedef std::chrono::steady_clock Clock;

/* What happens to a change that is made while a thread is blocked in pollset_poll. The sources disagree. */
enum class Changes
{
  WAIT,   /* pollset_ctl waits until every poller has left */
  UNSEEN, /* it returns, and a poller that is inside does not see the change */
  SEEN    /* it returns, and every poller sees the change at once */
};

struct Options
{
  Changes changes;
  bool strict;
  bool one_shot;
  int patience_s; /* how long a change waits for pollers before that counts as a hang; 0 is for ever */
};

[[noreturn]] __attribute__((format(printf, 1, 2))) void misuse(const char *format, ...)
{
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "pollset shim: %s\n", text);
  std::abort();
}

bool is_set(const char *name, bool otherwise)
{
  const char *value= std::getenv(name);
  return value ? std::strcmp(value, "0") != 0 : otherwise;
}

Options read_options()
{
  Options read;
  const char *changes= std::getenv("POLLSET_SHIM_CHANGES");
  if (!changes || !std::strcmp(changes, "wait"))
    read.changes= Changes::WAIT;
  else if (!std::strcmp(changes, "unseen"))
    read.changes= Changes::UNSEEN;
  else if (!std::strcmp(changes, "seen"))
    read.changes= Changes::SEEN;
  else
    misuse("POLLSET_SHIM_CHANGES is `%s`; it can be wait, unseen or seen", changes);
  read.strict= is_set("POLLSET_SHIM_STRICT", true);
  read.one_shot= is_set("POLLSET_SHIM_ONE_SHOT", POLLSET_SHIM_PROMISES_ONE_SHOT);
  const char *patience= std::getenv("POLLSET_SHIM_PATIENCE");
  read.patience_s= patience ? std::atoi(patience) : 60;
  return read;
}

const Options &options()
{
  static const Options read= read_options();
  return read;
}

struct Member
{
  short events;
  uint32_t generation; /* tells an event of this membership from one of an earlier membership of the same fd */
  bool socket;
  bool reported; /* returned by pollset_poll since it was added */
  bool in_epoll;
};

struct Set
{
  std::mutex mutex;
  std::condition_variable left; /* a poller or a waiting change has left */
  std::unordered_map<int, Member> members;
  std::vector<int> unseen; /* descriptors whose epoll state is behind `members` */
  int epoll;
  int most;
  pid_t owner;
  int inside;
  int waiting_changes;
  uint32_t generations;
  bool destroyed;
};

/* Identifiers are never used again, so that a stale one is noticed. */
const int SETS_MOST= 65536;
std::atomic<Set *> sets[SETS_MOST];
std::atomic<int> created;
std::atomic<int> alive;

/* The set, or a null pointer with errno. */
Set *set_of(pollset_t ps)
{
  Set *set= ps >= 0 && ps < SETS_MOST ? sets[ps].load() : nullptr;
  if (!set)
  {
    if (options().strict)
      misuse("%d is not a pollset", ps);
    errno= EBADF;
    return nullptr;
  }
  if (set->owner != getpid())
  {
    errno= EACCES;
    return nullptr;
  }
  return set;
}

/* With the set's lock: whether it still lives. */
bool lives(Set *set, pollset_t ps)
{
  if (!set->destroyed)
    return true;
  if (options().strict)
    misuse("pollset %d was destroyed and is used again", ps);
  errno= EBADF;
  return false;
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

uint32_t to_epoll(short events)
{
  /* POLL* and EPOLL* have the same values on Linux; errors and hang-ups are always reported. */
  return static_cast<uint32_t>(static_cast<unsigned short>(events)) & (EPOLLIN | EPOLLPRI | EPOLLOUT);
}

uint64_t label(int fd, const Member &member)
{
  return static_cast<uint64_t>(member.generation) << 32 | static_cast<uint32_t>(fd);
}

int tell_epoll(Set *set, int command, int fd, const Member &member)
{
  epoll_event event;
  event.events= to_epoll(member.events);
  event.data.u64= label(fd, member);
  return epoll_ctl(set->epoll, command, fd, &event);
}

/* Brings epoll up to the members for one descriptor. */
int settle(Set *set, int fd)
{
  std::unordered_map<int, Member>::iterator found= set->members.find(fd);
  if (found == set->members.end())
  {
    epoll_event ignored;
    epoll_ctl(set->epoll, EPOLL_CTL_DEL, fd, &ignored);
    return 0;
  }
  Member &member= found->second;
  int result= tell_epoll(set, member.in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, member);
  if (result == -1 && errno == ENOENT)
    result= tell_epoll(set, EPOLL_CTL_ADD, fd, member);
  else if (result == -1 && errno == EEXIST)
    result= tell_epoll(set, EPOLL_CTL_MOD, fd, member);
  member.in_epoll= result == 0;
  return result;
}

/* Whether epoll is told later, because a poller that is inside must not see the change. */
bool put_off(Set *set, int fd)
{
  if (options().changes != Changes::UNSEEN || set->inside == 0)
    return false;
  set->unseen.push_back(fd);
  return true;
}

int tell(Set *set, int fd)
{
  if (!put_off(set, fd))
    return settle(set, fd);
  return is_open(fd) ? 0 : -1;
}

int put_in(Set *set, const poll_ctl &control)
{
  if (set->most >= 0 && set->members.size() >= static_cast<size_t>(set->most))
  {
    errno= ENOSPC;
    return -1;
  }
  struct stat about;
  Member member= Member();
  member.events= control.events;
  member.generation= ++set->generations;
  member.socket= options().one_shot && fstat(control.fd, &about) == 0 && S_ISSOCK(about.st_mode);
  set->members[control.fd]= member;
  if (tell(set, control.fd) == 0)
    return 0;
  set->members.erase(control.fd);
  if (errno == EPERM) /* a file or a folder, which epoll does not watch */
    errno= EINVAL;
  return -1;
}

int take_out(Set *set, int fd)
{
  bool watched= set->members[fd].in_epoll;
  set->members.erase(fd);
  if (put_off(set, fd))
    return 0;
  epoll_event ignored;
  if (epoll_ctl(set->epoll, EPOLL_CTL_DEL, fd, &ignored) == 0 || !watched || !options().strict)
    return 0;
  if (errno == ENOENT)
    misuse("descriptor %d was closed and opened again while it was in a pollset", fd);
  errno= EBADF;
  return -1;
}

int change(Set *set, const poll_ctl &control)
{
  std::unordered_map<int, Member>::iterator found= set->members.find(control.fd);
  bool present= found != set->members.end();
  if (control.cmd == PS_DELETE && present)
    return take_out(set, control.fd);
  if (control.cmd == PS_MOD && present)
  {
    found->second.events= static_cast<short>(found->second.events | control.events);
    return tell(set, control.fd);
  }
  if ((control.cmd == PS_ADD || control.cmd == PS_MOD) && !present)
    return put_in(set, control);
  errno= is_open(control.fd) ? EINVAL : EBADF; /* an unknown command, there already, or not there */
  return -1;
}

int apply(Set *set, const poll_ctl &control)
{
  int result= change(set, control);
  if (result == -1 && errno == EBADF && control.fd >= 0 && options().strict)
    misuse("a control block names descriptor %d, which is closed", control.fd);
  return result;
}

/* With the lock: waits until a change may be made. */
void wait_for_pollers(Set *set, std::unique_lock<std::mutex> &guard, pollset_t ps)
{
  set->waiting_changes++;
  Clock::time_point end= Clock::now() + std::chrono::seconds(options().patience_s);
  while (set->inside > 0)
  {
    if (options().patience_s == 0)
      set->left.wait(guard);
    else if (set->left.wait_until(guard, end) == std::cv_status::timeout && set->inside > 0)
      misuse("pollset_ctl(%d) has waited %d s for a thread that is blocked in pollset_poll: on AIX it hangs",
             ps, options().patience_s);
  }
  set->waiting_changes--;
  set->left.notify_all();
}

/* One event of epoll as AIX reports it, or false where that membership has ended. */
bool report(Set *set, pollset_t ps, const epoll_event &event, pollfd *out)
{
  int fd= static_cast<int>(event.data.u64 & UINT32_MAX);
  std::unordered_map<int, Member>::iterator found= set->members.find(fd);
  if (found == set->members.end() || label(fd, found->second) != event.data.u64)
    return false;
  Member &member= found->second;
  if (options().one_shot && member.socket && member.reported)
    misuse("pollset %d reports descriptor %d a second time without PS_DELETE between: one-shot is broken", ps, fd);
  member.reported= true;
  out->fd= fd;
  out->events= member.events;
  out->revents= static_cast<short>(event.events & (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP));
  return true;
}

/* Without strictness: looks at each member, because epoll forgets a descriptor that is closed and AIX does not.
   Returns how many are closed. */
int report_closed(Set *set, pollfd *out, int most)
{
  int count= 0;
  for (std::unordered_map<int, Member>::iterator each= set->members.begin();
       each != set->members.end() && count < most; ++each)
    if (settle(set, each->first) == -1 && errno == EBADF)
    {
      out[count].fd= each->first;
      out[count].events= each->second.events;
      out[count++].revents= POLLNVAL;
    }
  return count;
}

int left_ms(Clock::time_point end)
{
  long long left= std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

} // namespace

extern "C" int pollset_shim_alive(void) { return alive.load(); }

extern "C" pollset_t pollset_create(int maxfd)
{
  if (maxfd < -1)
  {
    errno= EINVAL;
    return -1;
  }
  int number= created.fetch_add(1);
  if (number >= SETS_MOST)
  {
    created.fetch_sub(1);
    errno= ENOSPC;
    return -1;
  }
  Set *set= new (std::nothrow) Set();
  if (!set || (set->epoll= epoll_create1(EPOLL_CLOEXEC)) == -1)
  {
    delete set;
    errno= ENOMEM;
    return -1;
  }
  set->most= maxfd;
  set->owner= getpid();
  sets[number].store(set);
  alive.fetch_add(1);
  return number;
}

extern "C" int pollset_destroy(pollset_t ps)
{
  Set *set= set_of(ps);
  if (!set)
    return -1;
  std::unique_lock<std::mutex> guard(set->mutex);
  if (!lives(set, ps))
    return -1;
  if (set->inside > 0 && options().strict)
    misuse("pollset %d is destroyed while a thread is inside pollset_poll", ps);
  while (set->inside > 0)
    set->left.wait(guard);
  if (options().strict)
    for (std::unordered_map<int, Member>::iterator each= set->members.begin(); each != set->members.end(); ++each)
      if (!is_open(each->first))
        misuse("descriptor %d was closed while it was in pollset %d", each->first, ps);
  set->destroyed= true;
  set->members.clear();
  close(set->epoll);
  alive.fetch_sub(1);
  return 0;
}

extern "C" int pollset_ctl(pollset_t ps, struct poll_ctl *pollctl_array, int array_length)
{
  Set *set= set_of(ps);
  if (!set)
    return -1;
  if (!pollctl_array || array_length <= 0)
  {
    errno= pollctl_array ? EINVAL : EFAULT;
    return -1;
  }
  std::unique_lock<std::mutex> guard(set->mutex);
  if (options().changes == Changes::WAIT)
    wait_for_pollers(set, guard, ps);
  if (!lives(set, ps))
    return -1;
  for (int each= 0; each < array_length; each++)
    if (apply(set, pollctl_array[each]) == -1)
      return each ? each : -1;
  return 0;
}

extern "C" int pollset_query(pollset_t ps, struct pollfd *pollfd_query)
{
  Set *set= set_of(ps);
  if (!set)
    return -1;
  if (!pollfd_query)
  {
    errno= EFAULT;
    return -1;
  }
  std::unique_lock<std::mutex> guard(set->mutex);
  if (!lives(set, ps))
    return -1;
  std::unordered_map<int, Member>::iterator found= set->members.find(pollfd_query->fd);
  if (found == set->members.end())
    return 0;
  pollfd_query->events= found->second.events;
  return 1;
}

extern "C" int pollset_poll(pollset_t ps, struct pollfd *polldata_array, int array_length, int timeout)
{
  Set *set= set_of(ps);
  if (!set)
    return -1;
  if (!polldata_array || array_length <= 0 || timeout < -1)
  {
    errno= polldata_array ? EINVAL : EFAULT;
    return -1;
  }
  Clock::time_point end= Clock::now() + std::chrono::milliseconds(timeout);
  std::vector<epoll_event> events(static_cast<size_t>(array_length));
  std::unique_lock<std::mutex> guard(set->mutex);
  /* A change that waits goes first, as with a lock for readers and a writer. */
  while (timeout != 0 && set->waiting_changes > 0)
    set->left.wait(guard);
  if (!lives(set, ps))
    return -1;
  for (;;)
  {
    for (size_t each= 0; each < set->unseen.size(); each++)
      settle(set, set->unseen[each]);
    set->unseen.clear();
    if (!options().strict)
      if (int closed= report_closed(set, polldata_array, array_length))
        return closed;
    set->inside++;
    guard.unlock();
    int found= epoll_wait(set->epoll, &events[0], array_length, timeout > 0 ? left_ms(end) : timeout);
    int error= errno;
    guard.lock();
    set->inside--;
    set->left.notify_all();
    if (found == -1)
    {
      errno= error;
      return -1;
    }
    int count= 0;
    for (int each= 0; each < found; each++)
      count+= report(set, ps, events[static_cast<size_t>(each)], polldata_array + count);
    if (count > 0 || timeout == 0 || (timeout > 0 && left_ms(end) == 0))
      return count;
  }
}
