/*
  Searches, changes and evictions of vector_mhnsw.cc at once, without a server: run.sh says how to build it.

    stress sweep VECTORS DIMENSIONS             one thread; caches from 1/16 of the graph to all of it
    stress threads SECONDS READERS WRITERS      transactional, as InnoDB
    stress locks SECONDS READERS WRITERS        with table locks, as MyISAM

  After each phase every loaded node of the cache is compared with its row. GPL-2.0, as the file that it tests.
*/
#include "server.h"
#include <chrono>
#include <random>
#include <thread>
int mhnsw_read_next(TABLE *table);
#define private public
#define protected public
#include "mhnsw.inc"
#undef private
#undef protected

static uint dimensions= 16;
static bool transactional= true;
static ha_index_option_struct index_options= { 6, EUCLIDEAN };
static KEY keys[1], graph_keys[2];
static TABLE_SHARE user_share, graph_share;
static Rows_and_indexes graph_rows;
static MDL_ticket tickets[256];
static std::mutex one_writer;
static std::shared_mutex table_lock;
static std::mutex turn;                 // else readers never let a writer have the table
static std::atomic<uint64_t> last_id{0};
static std::atomic<long> searches{0}, longer{0}, commits{0}, rollbacks{0};

static std::string vector_of(uint64_t seed)
{
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  // a few hidden dimensions, as real vectors have
  float hidden[8];
  for (float &h : hidden)
    h= normal(random);
  std::mt19937_64 mix(1);
  std::string v(dimensions * sizeof(float), '\0');
  for (uint i= 0; i < dimensions; i++)
  {
    float x= 0;
    for (float h : hidden)
      x+= h * normal(mix);
    x+= 0.1f * normal(random);
    memcpy(&v[i * sizeof(float)], &x, sizeof x);
  }
  return v;
}

/* a connection: its tables, and what it asks */
struct Session
{
  THD thd;
  TABLE user, graph;
  Field vec_field;
  std::string vec;
  KEY::Part part{ &vec_field };
  KEY key;
  Item_func_vec_distance distance;
  std::mt19937_64 random;

  explicit Session(uint number) : random(number + 1)
  {
    key.key_part= &part;
    key.option_struct= &index_options;
    vec_field.text= &vec;
    for (TABLE *t : { &user, &graph })
    {
      t->in_use= &thd;
      t->mdl_ticket= tickets + number;
      t->file->transactional= transactional;
    }
    user.s= &user_share;
    user.hlindex= &graph;
    graph.s= &graph_share;
    graph.key_info= graph_keys;
    thd.rand= number + 7;
    current_thd= &thd;
    graph_of_thread= &graph;
  }
  ~Session() { free_root(thd.mem_root, 0); free_root(&thd.transaction->mem_root, 0); }

  void insert(uint64_t id)
  {
    vec= vector_of(id);
    user.file->at= id;
    if (int err= mhnsw_insert(&user, &key))
      fail("insert", err);
    statement_ends();
  }
  void remove(uint64_t id)
  {
    user.file->at= id;
    int err= mhnsw_invalidate(&user, user.record[0], &key);
    if (err && err != HA_ERR_KEY_NOT_FOUND && err != HA_ERR_END_OF_FILE)
      fail("delete", err);
    statement_ends();
  }
  void statement_ends()
  {
    free_root(thd.mem_root, 0);
    if (!transactional)
    {
      graph_rows.apply(thd.changes);
      thd.changes.clear();
    }
  }
  void end(bool commit)
  {
    if (commit)
      graph_rows.apply(thd.changes);
    thd.changes.clear();
    if (thd.ha_data)
      (commit ? MHNSW_Trx::tp.commit : MHNSW_Trx::tp.rollback)(&thd, true);
    free_root(&thd.transaction->mem_root, 0);
    (commit ? commits : rollbacks)++;
  }
  std::vector<uint64_t> nearest(const std::string &to, uint limit, uint rows)
  {
    std::vector<uint64_t> ids;
    distance.argument.value= to;
    int err= mhnsw_read_first(&user, &key, &distance, limit);
    bool began= graph.context;
    while (!err)
    {
      uint64_t id;
      memcpy(&id, user.record[0], 8);
      if (!id || id > last_id)
        fail("a row that never was", static_cast<long>(id));
      ids.push_back(id);
      if (ids.size() == rows)
        break;
      err= mhnsw_read_next(&user);
    }
    if (err && err != HA_ERR_END_OF_FILE)
      fail("search", err);
    if (began)
      mhnsw_read_end(&user);
    user.file->scanning= false;
    free_root(thd.mem_root, 0);
    if (thd.ha_data)
      end(true);
    searches++;
    longer+= rows > limit;
    return ids;
  }
};

/* every loaded node must be as its row is */
static void check_cache()
{
  auto ctx= static_cast<MHNSW_Share*>(graph_share.hlindex_data);
  size_t loaded= 0, nodes= 0;
  if (!ctx)
    return;
  if (ctx->refcnt != 1)
    fail("references to the cache", ctx->refcnt);
  for (FVectorNode &node : ctx->node_cache)
  {
    nodes++;
    if (!node.vec)
      continue;
    loaded++;
    uint64_t id;
    memcpy(&id, node.gref(), 8);
    const Row &row= graph_rows.rows.at(id);
    std::string links;
    for (uint i= 0; i <= node.max_layer; i++)
    {
      links+= static_cast<char>(node.neighbors[i].num);
      for (size_t j= 0; j < node.neighbors[i].num; j++)
      {
        const FVectorNode *link= node.neighbors[i].links[j];
        if (link != ctx->find_node(link->gref()))
          fail("a link that leads out of its generation", static_cast<long>(id));
        links.append(reinterpret_cast<const char*>(link->gref()), 8);
      }
    }
    const FVector *vec= node.vec;
    if (links != row.neighbors || node.deleted != row.tref_is_null || node.max_layer != row.layer ||
        (!node.deleted && memcmp(node.tref(), row.tref.data(), 8)) ||
        memcmp(vec->data(), row.vec.data(), row.vec.size()))
      fail("a stale node", static_cast<long>(id));
  }
  printf("  %zu nodes in the cache, %zu loaded: as their rows\n", nodes, loaded);
}

static void drop_cache()
{
  user_share.hlindex= &graph_share;
  mhnsw_free(&user_share);
}

static void read_for(uint number, const std::atomic<bool> &stop)
{
  Session session(number);
  while (!stop)
  {
    std::shared_lock<std::shared_mutex> guard(table_lock, std::defer_lock);
    if (!transactional)
    {
      std::lock_guard<std::mutex> queue(turn);
      guard.lock();
    }
    uint rows= session.random() % 8 ? 10 : 40;  // some go on beyond their limit
    session.nearest(vector_of(session.random()), 10, rows);
    // else there is always a reader, and no commit gets its lock
    std::this_thread::sleep_for(std::chrono::microseconds(session.random() % 4000));
  }
}

static void write_for(uint number, const std::atomic<bool> &stop)
{
  Session session(number);
  auto &random= session.random;
  auto change= [&]{
    if (random() % 4)
      session.insert(++last_id);
    else
      session.remove(random() % last_id + 1);
  };
  while (!stop)
  {
    if (!transactional)
    {
      std::unique_lock<std::mutex> queue(turn);
      std::unique_lock<std::shared_mutex> guard(table_lock);
      queue.unlock();
      change();
      continue;
    }
    std::lock_guard<std::mutex> guard(one_writer);
    for (uint i= random() % 4; i + 1; i--)
      change();
    if (random() % 4 == 0)
    {
      Rows saved= session.thd.changes;
      change();
      session.thd.changes= saved;
      if (session.thd.ha_data)
        MHNSW_Trx::tp.savepoint_rollback(&session.thd, nullptr);
      change();
    }
    if (random() % 64 == 0 && session.thd.ha_data)
      static_cast<MHNSW_Trx*>(session.thd.ha_data)->reset(nullptr);
    session.end(random() % 8);
  }
}

static void fill(uint n)
{
  Session session(0);
  for (uint i= 0; i < n; i++)
  {
    session.insert(++last_id);
    if (transactional && i % 50 == 49)
      session.end(true);
  }
  if (transactional)
    session.end(true);
}

static void run_threads(int seconds, uint readers, uint writers)
{
  mhnsw_max_cache_size= 64 << 20;
  fill(3000);
  for (int phase= 0; phase < std::max(seconds / 5, 1); phase++)
  {
    drop_cache();
    mhnsw_max_cache_size= (200 << 10) << phase % 3;
    memory_most= memory_now.load();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint i= 0; i < readers; i++)
      threads.emplace_back(read_for, 1 + i, std::cref(stop));
    for (uint i= 0; i < writers; i++)
      threads.emplace_back(write_for, 1 + readers + i, std::cref(stop));
    std::this_thread::sleep_for(std::chrono::seconds(5));
    stop= true;
    for (auto &t : threads)
      t.join();
    printf("limit %llu KiB, at most %zu KiB in all MEM_ROOTs: %ld searches, %ld longer, %ld commits, %ld rollbacks\n",
           mhnsw_max_cache_size >> 10, memory_most >> 10, searches.load(), longer.load(), commits.load(),
           rollbacks.load());
#ifdef HAS_STATUS
    printf("  %llu evictions, %llu misses so far\n", cache_status.evictions.load(), cache_status.misses.load());
#endif
    check_cache();
  }
  drop_cache();
}

static void sweep(uint vectors)
{
  constexpr uint queries= 2000;
  mhnsw_max_cache_size= 4ULL << 30;
  fill(vectors);
  Session session(1);
  std::vector<std::string> all;
  for (uint64_t id= 1; id <= vectors; id++)
    all.push_back(vector_of(id));
  auto d2= [](const std::string &a, const std::string &b) {
    auto p= reinterpret_cast<const float*>(a.data()), q= reinterpret_cast<const float*>(b.data());
    float d= 0;
    for (uint i= 0; i < dimensions; i++)
      d+= (p[i] - q[i]) * (p[i] - q[i]);
    return d;
  };
  std::vector<std::set<uint64_t>> exact(200);
  for (uint q= 0; q < exact.size(); q++)
  {
    std::vector<std::pair<float, uint64_t>> near;
    std::string to= vector_of(1ULL << 40 | q);
    for (uint64_t id= 1; id <= vectors; id++)
      near.push_back({ d2(all[id - 1], to), id });
    std::partial_sort(near.begin(), near.begin() + 10, near.end());
    for (uint i= 0; i < 10; i++)
      exact[q].insert(near[i].second);
  }
  size_t graph= 0;
  for (uint part : { 1, 2, 4, 8, 16 })
  {
    drop_cache();
    size_t before= memory_now;
    if (graph)
      mhnsw_max_cache_size= graph / part;
    for (uint q= 0; q < queries; q++)
      session.nearest(vector_of(1ULL << 41 | q), 10, 10);
    if (!graph)
    {
      // what all of the graph takes here, and a little, so that it fits
      graph= std::max<size_t>((memory_now - before) * 5 / 4, 1 << 20);
      mhnsw_max_cache_size= graph;
    }
    memory_most= memory_now.load();
    rows_read= 0;
    uint right= 0;
    for (uint q= 0; q < queries; q++)
    {
      auto ids= session.nearest(vector_of(1ULL << 40 | q), 10, 10);
      if (q < exact.size())
        for (uint64_t id : ids)
          right+= exact[q].count(id);
    }
    printf("1/%-2u limit %6zu KiB: %7.1f rows read per query, recall@10 %.3f, at most %zu KiB\n", part,
           static_cast<size_t>(mhnsw_max_cache_size >> 10), double(rows_read) / queries,
           right / (10. * exact.size()), (memory_most - before) >> 10);
  }
  check_cache();
  drop_cache();
}

int main(int argc, char **argv)
{
  if (argc < 4)
    return fprintf(stderr, "usage: stress sweep VECTORS DIMENSIONS | threads|locks SECONDS READERS WRITERS\n"), 2;
  std::string mode= argv[1];
  setvbuf(stdout, nullptr, _IOLBF, 0);
  transactional= mode != "locks";
  keys[0].option_struct= &index_options;
  user_share.key_info= keys;
  user_share.hlindex= &graph_share;
  graph_share.data= &graph_rows;
  the_share= &user_share;
  if (mode == "sweep")
  {
    dimensions= atoi(argv[3]);
    sweep(atoi(argv[2]));
  }
  else
    run_threads(atoi(argv[2]), atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 1);
  free_root(&graph_share.mem_root, 0);
  printf("done\n");
  return 0;
}
