/* The thread pool's back end over the shim, with a pool and clients as in the server, but nothing else of it:
   `pollset_stress THREADS CLIENTS REQUESTS`.

   The threads of the pool do as threadpool_generic.cc: one of them listens, the others ask with a timeout of 0.
   Whoever is delivered a connection answers its request and arms it again. Every 16th connection is closed, so that
   its descriptor's number is used again at once. Prints what went wrong, and exits with 1 where anything did. */

#include <threadpool_pollset.h>

#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <poll.h>

namespace
{

const int PATIENCE_MS= 10000; /* a client that waits longer for an answer has been forgotten */
const int CLOSED_EVERY= 16;
const int SESSIONS_OF_A_CLIENT= 4;
const int ROOM= 2; /* for events, so that there are often more */

std::atomic<long> answered, delivered_twice, not_readable, lost, refused;
std::atomic<bool> over;

struct Connection
{
  int fd;
  int answers;
  std::atomic<bool> armed;
};

struct Pool
{
  tp_pollset *set;
  std::mutex mutex;
  bool listened= false;
  int end_pipe[2]; /* carries no data, as the server's at its shutdown */

  Pool() : set(tp_pollset::create())
  {
    if (!set || pipe(end_pipe))
      std::abort();
  }

  void end()
  {
    if (set->arm(end_pipe[0], nullptr) || write(end_pipe[1], "x", 1) != 1)
      std::abort();
  }

  void arm(Connection *connection)
  {
    connection->armed= true;
    if (set->arm(connection->fd, connection))
      refused++;
  }

  void serve(Connection *connection)
  {
    if (!connection->armed.exchange(false))
    {
      delivered_twice++;
      return;
    }
    char request;
    ssize_t got= recv(connection->fd, &request, 1, MSG_DONTWAIT);
    if (got == -1)
    {
      not_readable++;
      arm(connection);
      return;
    }
    bool ends= got == 0 || ++connection->answers % CLOSED_EVERY == 0;
    int fd= connection->fd;
    if (ends)
    {
      /* The number is free once it is closed, so that the record must be gone before. */
      delete connection;
      if (got == 1)
        (void) !send(fd, "b", 1, MSG_NOSIGNAL);
      close(fd);
    }
    else
    {
      (void) !send(fd, "a", 1, MSG_NOSIGNAL);
      arm(connection);
    }
    if (got == 1)
      answered++;
  }

  void work()
  {
    tp_pollset_event events[ROOM + 1];
    events[ROOM].data= &over; /* nobody may write here */
    while (!over)
    {
      bool listens;
      {
        std::lock_guard<std::mutex> guard(mutex);
        listens= !listened;
        listened= true;
      }
      int count= set->wait(events, ROOM, listens ? -1 : 0);
      if (listens)
      {
        std::lock_guard<std::mutex> guard(mutex);
        listened= false;
      }
      if (events[ROOM].data != &over)
      {
        std::fputs("more events than there is room for\n", stderr);
        std::abort();
      }
      for (int i= 0; i < count; i++)
        if (events[i].data)
          serve(static_cast<Connection *>(events[i].data));
        else /* another thread may have begun to listen since */
          set->arm(end_pipe[0], nullptr);
      if (count == 0)
        std::this_thread::yield();
    }
  }
};

/* The client's end of a connection whose other end the pool has. */
int connect(Pool &pool)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
    std::abort();
  Connection *connection= new Connection;
  connection->fd= ends[0];
  connection->answers= 0;
  pool.arm(connection);
  return ends[1];
}

void ask(Pool &pool, long requests)
{
  int sessions[SESSIONS_OF_A_CLIENT];
  for (int &session : sessions)
    session= connect(pool);
  for (long i= 0; i < requests && !lost; i++)
  {
    int &session= sessions[i % SESSIONS_OF_A_CLIENT];
    char answer= 0;
    pollfd awaited= {session, POLLIN, 0};
    if (send(session, "q", 1, MSG_NOSIGNAL) != 1 || poll(&awaited, 1, PATIENCE_MS) != 1 ||
        recv(session, &answer, 1, 0) != 1)
    {
      lost++;
      break;
    }
    if (answer == 'b')
    {
      close(session);
      session= connect(pool);
    }
  }
  for (int session : sessions)
    close(session);
}

/* Arms and disarms connections that never say anything, beside the others. */
void hesitate(Pool &pool)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
    std::abort();
  while (!over)
  {
    if (pool.set->arm(ends[0], nullptr) || pool.set->disarm(ends[0]) || pool.set->disarm(ends[0]) != -1)
      refused++;
    std::this_thread::yield();
  }
  close(ends[0]);
  close(ends[1]);
}

} // namespace

int main(int count, char **arguments)
{
  if (count != 4)
    return 2;
  int threads= std::atoi(arguments[1]), clients= std::atoi(arguments[2]);
  long requests= std::atol(arguments[3]);
  std::unique_ptr<Pool> pool(new Pool);
  std::vector<std::thread> pooled, asking;
  for (int i= 0; i < threads; i++)
    pooled.emplace_back([&] { pool->work(); });
  for (int i= 0; i < clients; i++)
    asking.emplace_back([&] { ask(*pool, requests); });
  std::thread hesitating([&] { hesitate(*pool); });
  for (std::thread &thread : asking)
    thread.join();
  if (!lost)
  {
    over= true;
    hesitating.join();
    pool->end();
    for (std::thread &thread : pooled)
      thread.join();
  }
  std::printf("answered %ld, delivered twice %ld, not readable %ld, refused %ld, lost %ld\n", answered.load(),
              delivered_twice.load(), not_readable.load(), refused.load(), lost.load());
  bool wrong= delivered_twice || not_readable || refused || lost || answered != requests * clients;
  std::fflush(stdout);
  if (lost)
    std::_Exit(1);
  delete pool->set;
  if (pollset_shim_alive() || fcntl(0, F_GETFD) == -1)
  {
    std::printf("the pollset was closed as if it were a descriptor\n");
    wrong= true;
  }
  return wrong;
}
