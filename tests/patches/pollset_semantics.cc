/* What the pollset shim does, one claim at a time: `pollset_semantics CLAIM`. Exits with 0 where it holds, says
   what it saw otherwise. A claim about misuse is meant to abort. */

#include <sys/pollset.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace
{

#define EXPECT(what)                                                                                               \
  do                                                                                                               \
  {                                                                                                                \
    if (!(what))                                                                                                   \
    {                                                                                                              \
      std::printf("line %d: not so: %s (errno %d)\n", __LINE__, #what, errno);                                      \
      std::exit(1);                                                                                                \
    }                                                                                                              \
  } while (0)

struct Pair
{
  int ours, theirs;
  Pair()
  {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ours= ends[0];
    theirs= ends[1];
  }
  void say() const { EXPECT(write(theirs, "x", 1) == 1); }
  void hear() const
  {
    char heard;
    EXPECT(read(ours, &heard, 1) == 1);
  }
};

poll_ctl control(int command, int fd, int events= POLLIN)
{
  poll_ctl made;
  made.cmd= static_cast<short>(command);
  made.events= static_cast<short>(events);
  made.fd= fd;
  return made;
}

int change(pollset_t set, int command, int fd, int events= POLLIN)
{
  poll_ctl one= control(command, fd, events);
  return pollset_ctl(set, &one, 1);
}

void identifiers_are_no_descriptors()
{
  EXPECT(pollset_create(-1) == 0);
  EXPECT(pollset_create(-1) == 1);
  EXPECT(fcntl(0, F_GETFD) != -1);
  EXPECT(pollset_shim_alive() == 2);
  EXPECT(pollset_destroy(0) == 0 && pollset_destroy(1) == 0);
  EXPECT(pollset_shim_alive() == 0);
}

void events_are_level_triggered()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pollfd told;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  EXPECT(pollset_poll(set, &told, 1, 0) == 0);
  pair.say();
  for (int round= 0; round < 3; round++)
    EXPECT(pollset_poll(set, &told, 1, -1) == 1 && told.fd == pair.ours && told.revents == POLLIN &&
           told.events == POLLIN);
  pair.hear();
  EXPECT(pollset_poll(set, &told, 1, 1) == 0);
}

void an_add_of_a_member_fails()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  EXPECT(change(set, PS_ADD, pair.ours) == -1 && errno == EINVAL);
}

void a_modification_adds_events_or_a_member()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pollfd told;
  EXPECT(change(set, PS_MOD, pair.ours, POLLIN) == 0);
  EXPECT(change(set, PS_MOD, pair.ours, POLLOUT) == 0);
  told.fd= pair.ours;
  EXPECT(pollset_query(set, &told) == 1 && told.events == (POLLIN | POLLOUT));
  EXPECT(pollset_poll(set, &told, 1, 0) == 1 && told.revents == POLLOUT);
}

void a_delete_of_a_stranger_fails()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pollfd told;
  told.fd= pair.ours;
  EXPECT(change(set, PS_DELETE, pair.ours) == -1 && errno == EINVAL);
  EXPECT(pollset_query(set, &told) == 0);
}

void an_array_is_applied_up_to_its_first_mistake()
{
  pollset_t set= pollset_create(-1);
  Pair one, two, three;
  poll_ctl controls[]= {control(PS_ADD, one.ours), control(PS_ADD, two.ours), control(PS_ADD, two.ours),
                        control(PS_ADD, three.ours)};
  pollfd told;
  EXPECT(pollset_ctl(set, controls, 4) == 2);
  told.fd= two.ours;
  EXPECT(pollset_query(set, &told) == 1);
  told.fd= three.ours;
  EXPECT(pollset_query(set, &told) == 0);
}

void a_set_has_no_more_members_than_it_was_made_for()
{
  pollset_t set= pollset_create(1);
  Pair one, two;
  EXPECT(change(set, PS_ADD, one.ours) == 0);
  EXPECT(change(set, PS_ADD, two.ours) == -1 && errno == ENOSPC);
}

void a_closed_member_is_reported_until_it_is_deleted()
{
  pollset_t set= pollset_create(-1);
  Pair pair, other;
  pollfd told;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  close(pair.ours);
  for (int round= 0; round < 2; round++)
    EXPECT(pollset_poll(set, &told, 1, 0) == 1 && told.fd == pair.ours && told.revents == POLLNVAL);
  EXPECT(dup2(other.ours, pair.ours) == pair.ours);
  EXPECT(pollset_poll(set, &told, 1, 0) == 0);
  other.say();
  EXPECT(pollset_poll(set, &told, 1, 0) == 1 && told.fd == pair.ours && told.revents == POLLIN);
  close(pair.ours);
  EXPECT(change(set, PS_DELETE, pair.ours) == 0);
  EXPECT(pollset_poll(set, &told, 1, 0) == 0);
}

void a_child_has_no_access()
{
  pollset_t set= pollset_create(-1);
  pid_t child= fork();
  if (child == 0)
    _exit(pollset_destroy(set) == -1 && errno == EACCES ? 0 : 1);
  int status;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(pollset_destroy(set) == 0);
}

void arguments_are_checked()
{
  pollset_t set= pollset_create(-1);
  pollfd told;
  poll_ctl one= control(PS_ADD, 0);
  EXPECT(pollset_create(-2) == -1 && errno == EINVAL);
  EXPECT(pollset_ctl(set, nullptr, 1) == -1 && errno == EFAULT);
  EXPECT(pollset_ctl(set, &one, 0) == -1 && errno == EINVAL);
  EXPECT(pollset_poll(set, nullptr, 1, 0) == -1 && errno == EFAULT);
  EXPECT(pollset_poll(set, &told, 1, -2) == -1 && errno == EINVAL);
  EXPECT(pollset_query(set, nullptr) == -1 && errno == EFAULT);
  EXPECT(change(set, 7, 0) == -1 && errno == EINVAL);
}

/* A thread blocked in pollset_poll on a pipe of its own. */
struct Blocked
{
  pollset_t set;
  int pipe_ends[2];
  std::atomic<int> told;
  std::thread thread;
  explicit Blocked(pollset_t set) : set(set), told(-1)
  {
    EXPECT(pipe(pipe_ends) == 0);
    EXPECT(change(set, PS_ADD, pipe_ends[0]) == 0);
    std::atomic<bool> begun(false);
    thread= std::thread([this, &begun] {
      pollfd event;
      begun= true;
      EXPECT(pollset_poll(this->set, &event, 1, -1) == 1);
      told= event.fd;
    });
    while (!begun)
      std::this_thread::yield();
    /* The thread has begun, and has time to enter. Where it is late, the claim is about one that enters later. */
    usleep(100000);
  }
  void free() { EXPECT(write(pipe_ends[1], "x", 1) == 1); }
};

void a_change_waits_for_a_blocked_poller()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  Blocked blocked(set);
  std::atomic<bool> done(false);
  std::thread changing([&] {
    EXPECT(change(set, PS_ADD, pair.ours) == 0);
    done= true;
  });
  usleep(100000);
  EXPECT(!done);
  blocked.free();
  blocked.thread.join();
  changing.join();
  EXPECT(done && blocked.told == blocked.pipe_ends[0]);
}

void a_blocked_poller_does_not_see_a_change()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pair.say();
  Blocked blocked(set);
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  usleep(100000);
  EXPECT(blocked.told == -1);
  blocked.free();
  blocked.thread.join();
  EXPECT(blocked.told == blocked.pipe_ends[0]);
  pollfd told[2];
  EXPECT(pollset_poll(set, told, 2, 0) == 2);
}

void a_blocked_poller_sees_a_change()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pair.say();
  Blocked blocked(set);
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  blocked.thread.join();
  EXPECT(blocked.told == pair.ours);
}

void misuse_control_of_a_closed_descriptor()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  close(pair.ours);
  change(set, PS_DELETE, pair.ours);
}

void misuse_reuse_of_a_member()
{
  pollset_t set= pollset_create(-1);
  Pair pair, other;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  EXPECT(dup2(other.ours, pair.ours) == pair.ours);
  change(set, PS_DELETE, pair.ours);
}

void misuse_destroy_with_a_closed_member()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  close(pair.ours);
  pollset_destroy(set);
}

void misuse_destroy_while_polling()
{
  pollset_t set= pollset_create(-1);
  Blocked blocked(set);
  pollset_destroy(set);
}

void misuse_use_after_destroy()
{
  pollset_t set= pollset_create(-1);
  pollset_destroy(set);
  pollfd told;
  pollset_poll(set, &told, 1, 0);
}

void misuse_a_second_report()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  pollfd told;
  EXPECT(change(set, PS_ADD, pair.ours) == 0);
  pair.say();
  EXPECT(pollset_poll(set, &told, 1, 0) == 1);
  EXPECT(change(set, PS_DELETE, pair.ours) == 0 && change(set, PS_ADD, pair.ours) == 0);
  EXPECT(pollset_poll(set, &told, 1, 0) == 1);
  pollset_poll(set, &told, 1, 0);
}

void misuse_a_change_that_waits_for_ever()
{
  pollset_t set= pollset_create(-1);
  Pair pair;
  Blocked blocked(set);
  change(set, PS_ADD, pair.ours);
}

struct Claim
{
  const char *name;
  void (*holds)();
};

#define CLAIM(name) {#name, name}

const Claim claims[]= {
    CLAIM(identifiers_are_no_descriptors),
    CLAIM(events_are_level_triggered),
    CLAIM(an_add_of_a_member_fails),
    CLAIM(a_modification_adds_events_or_a_member),
    CLAIM(a_delete_of_a_stranger_fails),
    CLAIM(an_array_is_applied_up_to_its_first_mistake),
    CLAIM(a_set_has_no_more_members_than_it_was_made_for),
    CLAIM(a_closed_member_is_reported_until_it_is_deleted),
    CLAIM(a_child_has_no_access),
    CLAIM(arguments_are_checked),
    CLAIM(a_change_waits_for_a_blocked_poller),
    CLAIM(a_blocked_poller_does_not_see_a_change),
    CLAIM(a_blocked_poller_sees_a_change),
    CLAIM(misuse_control_of_a_closed_descriptor),
    CLAIM(misuse_reuse_of_a_member),
    CLAIM(misuse_destroy_with_a_closed_member),
    CLAIM(misuse_destroy_while_polling),
    CLAIM(misuse_use_after_destroy),
    CLAIM(misuse_a_second_report),
    CLAIM(misuse_a_change_that_waits_for_ever),
};

} // namespace

int main(int count, char **arguments)
{
  for (const Claim &claim : claims)
    if (count == 2 && !std::strcmp(arguments[1], claim.name))
    {
      claim.holds();
      return 0;
    }
  std::printf("no such claim\n");
  return 2;
}
