/* The least a client can do: prepared point selects over a MariaDB socket, N connections in one loop, nothing else.
 * It is what the driver's CPU per operation is compared with. No workload, no histogram, no error handling beyond
 * giving up: what it costs is the kernel's part and the parsing of one answer.
 *
 * `checked` is the loop of `io_uring` with what a measurement cannot do without, and nothing else: a key from a
 * generator whose streams do not repeat, every packet's number and the answer's status looked at, its rows counted, a
 * clock read once an operation, a latency counted to 3 digits, operations counted by second and by tenth.
 *
 * bare_loop epoll|io_uring|checked CONNECTIONS SECONDS SOCKET DATABASE ROWS  ->  "OPERATIONS SECONDS"
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { COM_STMT_PREPARE = 0x16, COM_STMT_EXECUTE = 0x17, OK = 0, END = 0xfe, ERROR = 0xff };
enum { BUFFER_BYTES = 2048, ANSWER_BYTES = 2048, REQUEST_BYTES = 64, ENTRIES = 1024 };

struct connection {
    int socket;
    uint32_t statement;
    int received;
    uint64_t began_ns;
    unsigned char request[REQUEST_BYTES];
    unsigned char answer[ANSWER_BYTES];
};

static struct connection *connections;
static unsigned buffers;
static uint64_t rows, operations, state = 88172645463325252ull;

/* What `checked` keeps: the state of xoshiro256++, and counts of one second by latency and by tenth. */
static int checking;
static uint64_t words[4] = {1, 2, 3, 4}, second_ends_ns, second_operations, seconds;
static uint32_t tables[2][44][1024], (*latencies)[1024] = tables[0], tenths[10];

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void read_packet(int socket, unsigned char *packet) {
    for (int have = 0, want = 4; have < want;) {
        ssize_t got = read(socket, packet + have, (size_t)(want - have));
        if (got <= 0) give_up("read");
        have += (int)got;
        if (have == 4) want = 4 + (packet[0] | packet[1] << 8 | packet[2] << 16);
    }
}

static void send_all(int socket, const void *bytes, int length) {
    if (send(socket, bytes, (size_t)length, MSG_NOSIGNAL) != length) give_up("send");
}

/* Logs in as dyno without a password, asking the server to leave column definitions out of repeated answers. */
static void log_in(int socket, const char *database) {
    unsigned char packet[1 << 16], reply[256] = {0};
    uint32_t capabilities = 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19 | 1 << 24, most = 1 << 30, cached = 1 << 4;
    int length = 4;
    read_packet(socket, packet);
    memcpy(reply + length, &capabilities, 4);
    memcpy(reply + length + 4, &most, 4);
    reply[length + 8] = 45;
    memcpy(reply + length + 28, &cached, 4);
    length += 32;
    length += sprintf((char *)reply + length, "dyno") + 1;
    reply[length++] = 0;
    length += sprintf((char *)reply + length, "%s", database) + 1;
    length += sprintf((char *)reply + length, "mysql_native_password") + 1;
    reply[0] = (unsigned char)(length - 4);
    reply[3] = 1;
    send_all(socket, reply, length);
    for (read_packet(socket, packet); packet[4] == END; read_packet(socket, packet)) {
        unsigned char empty[4] = {0, 0, 0, (unsigned char)(packet[3] + 1)};
        send_all(socket, empty, 4);
    }
    if (packet[4] != OK) give_up("log in");
}

static void open_connection(struct connection *one, const char *path, const char *database) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char sql[] = "SELECT c FROM sbtest1 WHERE id=?";
    unsigned char packet[1 << 16] = {sizeof sql, 0, 0, 0, COM_STMT_PREPARE};
    one->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (connect(one->socket, (void *)&address, sizeof address)) give_up("connect");
    log_in(one->socket, database);
    memcpy(packet + 5, sql, sizeof sql - 1);
    send_all(one->socket, packet, 4 + (int)sizeof sql);
    read_packet(one->socket, packet);
    if (packet[4] != OK) give_up("prepare");
    memcpy(&one->statement, packet + 5, 4);
    /* One parameter and one column are described, each in a packet. */
    read_packet(one->socket, packet);
    read_packet(one->socket, packet);
}

static uint64_t turned(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

static uint64_t draw_key(void) {
    if (!checking) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return (state >> 20) % rows + 1;
    }
    uint64_t drawn = turned(words[0] + words[3], 23) + words[0], shifted = words[1] << 17;
    words[2] ^= words[0], words[3] ^= words[1], words[1] ^= words[2], words[0] ^= words[3];
    words[2] ^= shifted, words[3] = turned(words[3], 45);
    return (uint64_t)((unsigned __int128)drawn * rows >> 64) + 1;
}

/* The parameter's type is sent with the first execution only. */
static int write_request(struct connection *one, int first) {
    unsigned char *packet = one->request;
    int length = 16;
    uint64_t key = draw_key();
    memset(packet, 0, REQUEST_BYTES);
    packet[4] = COM_STMT_EXECUTE;
    memcpy(packet + 5, &one->statement, 4);
    packet[10] = 1;
    packet[15] = (unsigned char)first;
    if (first) packet[length] = 8, length += 2;
    memcpy(packet + length, &key, 8);
    length += 8;
    packet[0] = (unsigned char)(length - 4);
    return length;
}

/* An answer is whole when a packet behind the first begins with the end mark. */
static int is_whole(const unsigned char *bytes, int length) {
    for (int at = 0, packet = 0; at + 4 <= length; packet++) {
        int size = bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16;
        if (at + 4 + size > length) return 0;
        if (packet > 0 && bytes[at + 4] == END) return 1;
        if (bytes[at + 4] == ERROR) exit(2);
        at += 4 + size;
    }
    return 0;
}

/* The rows of an answer; -1 while it is not whole. One that is wrong ends the program. */
static int count_rows(const unsigned char *bytes, int length) {
    for (int at = 0, packet = 0; at + 4 <= length; packet++) {
        const unsigned char *payload = bytes + at + 4;
        int size = bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16;
        if (bytes[at + 3] != packet + 1 || size == 0) exit(2);
        if (at + 4 + size > length) return -1;
        if (packet == 0 && !(size == 2 && payload[0] == 1 && payload[1] == 0)) exit(2);
        if (payload[0] == ERROR) exit(2);
        if (packet > 0 && payload[0] == END) {
            /* Another answer must not follow. */
            if (size < 7 || payload[3] & 8) exit(2);
            return packet - 1;
        }
        at += 4 + size;
    }
    return -1;
}

/* Another thread would read and clear the table of the second that is over. */
static void end_second(uint64_t at_ns) {
    latencies = tables[seconds & 1], memset(tenths, 0, sizeof tenths);
    second_operations = 0, seconds++, second_ends_ns = at_ns + 1000000000;
}

static int is_answered(struct connection *one, const unsigned char *bytes, int length) {
    if (!checking) return is_whole(bytes, length);
    int found = count_rows(bytes, length);
    if (found < 0) return 0;
    if (found == 0) exit(2);
    uint64_t at_ns = now_ns(), latency_ns = at_ns - one->began_ns;
    if (at_ns >= second_ends_ns) end_second(at_ns);
    int shift = 53 - __builtin_clzll(latency_ns | 1024);
    uint64_t place = latency_ns >> shift;
    latencies[(uint64_t)shift + (place >> 10)][place & 1023]++;
    tenths[(second_ends_ns - at_ns) / 100000001]++;
    second_operations++;
    one->began_ns = at_ns;
    return 1;
}

static void run_epoll(int count, double until_s) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ready[256];
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {EPOLLIN, {.u32 = (uint32_t)i}};
        epoll_ctl(set, EPOLL_CTL_ADD, connections[i].socket, &event);
        send_all(connections[i].socket, connections[i].request, write_request(&connections[i], 1));
    }
    while (now_s() < until_s) {
        int many = epoll_wait(set, ready, 256, -1);
        for (int i = 0; i < many; i++) {
            struct connection *one = &connections[ready[i].data.u32];
            unsigned char *free_space = one->answer + one->received;
            ssize_t got = recv(one->socket, free_space, (size_t)(ANSWER_BYTES - one->received), MSG_DONTWAIT);
            if (got <= 0) give_up("receive");
            one->received += (int)got;
            if (!is_whole(one->answer, one->received)) continue;
            one->received = 0;
            operations++;
            send_all(one->socket, one->request, write_request(one, 0));
        }
    }
}

struct ring {
    int descriptor;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask, pending;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
    struct io_uring_buf_ring *buffers;
    unsigned char *bytes;
};

static void *map(size_t bytes, int descriptor, off_t offset) {
    int flags = MAP_POPULATE | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, flags, descriptor, offset);
    if (at == MAP_FAILED) give_up("mmap");
    return at;
}

static void give_back(struct ring *ring, unsigned short buffer) {
    unsigned short tail = ring->buffers->tail;
    ring->buffers->bufs[tail & (buffers - 1)] = (struct io_uring_buf){
        .addr = (uint64_t)(ring->bytes + (size_t)buffer * BUFFER_BYTES), .len = BUFFER_BYTES, .bid = buffer};
    __atomic_store_n(&ring->buffers->tail, (unsigned short)(tail + 1), __ATOMIC_RELEASE);
}

/* The flags of the ring and the number of buffers are those of the driver. */
static struct ring open_ring(int count) {
    struct ring ring = {0};
    struct io_uring_params set = {.cq_entries = 8192};
    set.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN |
                IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
    unsigned wanted = (unsigned)(count < 1024 ? 2 * count < 1024 ? 2 * count : 1024 : count);
    for (buffers = 64; buffers < wanted && buffers < 32768;) buffers *= 2;
    ring.descriptor = (int)syscall(SYS_io_uring_setup, ENTRIES, &set);
    if (ring.descriptor < 0) give_up("io_uring_setup");
    size_t bytes = set.cq_off.cqes + set.cq_entries * sizeof(struct io_uring_cqe) + set.sq_off.array + ENTRIES * 4;
    char *shared = map(bytes, ring.descriptor, IORING_OFF_SQ_RING);
    ring.entries = map(ENTRIES * sizeof *ring.entries, ring.descriptor, IORING_OFF_SQES);
    ring.sq_tail = (void *)(shared + set.sq_off.tail), ring.sq_mask = (void *)(shared + set.sq_off.ring_mask);
    ring.sq_array = (void *)(shared + set.sq_off.array), ring.cq_head = (void *)(shared + set.cq_off.head);
    ring.cq_tail = (void *)(shared + set.cq_off.tail), ring.cq_mask = (void *)(shared + set.cq_off.ring_mask);
    ring.completions = (void *)(shared + set.cq_off.cqes);
    ring.buffers = map(buffers * sizeof(struct io_uring_buf), -1, 0);
    ring.bytes = map((size_t)buffers * BUFFER_BYTES, -1, 0);
    struct io_uring_buf_reg registration = {.ring_addr = (uint64_t)ring.buffers, .ring_entries = buffers};
    if (syscall(SYS_io_uring_register, ring.descriptor, IORING_REGISTER_PBUF_RING, &registration, 1))
        give_up("io_uring_register");
    for (unsigned short buffer = 0; buffer < buffers; buffer++) give_back(&ring, buffer);
    return ring;
}

static void enter(struct ring *ring, unsigned wait) {
    if (syscall(SYS_io_uring_enter, ring->descriptor, ring->pending, wait, IORING_ENTER_GETEVENTS, 0, 0) < 0)
        give_up("io_uring_enter");
    ring->pending = 0;
}

static struct io_uring_sqe *next_entry(struct ring *ring, int opcode, int connection) {
    if (ring->pending == ENTRIES) enter(ring, 0);
    unsigned tail = *ring->sq_tail, at = tail & *ring->sq_mask;
    struct io_uring_sqe *entry = &ring->entries[at];
    memset(entry, 0, sizeof *entry);
    entry->opcode = (uint8_t)opcode;
    entry->fd = connections[connection].socket;
    entry->user_data = (uint64_t)connection;
    ring->sq_array[at] = at;
    ring->pending++;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    return entry;
}

static void queue_receive(struct ring *ring, int connection) {
    struct io_uring_sqe *entry = next_entry(ring, IORING_OP_RECV, connection);
    entry->ioprio = IORING_RECV_MULTISHOT;
    entry->flags = IOSQE_BUFFER_SELECT;
}

static void queue_send(struct ring *ring, int connection, int first) {
    int length = write_request(&connections[connection], first);
    struct io_uring_sqe *entry = next_entry(ring, IORING_OP_SEND, connection);
    entry->addr = (uint64_t)connections[connection].request;
    entry->len = (unsigned)length;
    entry->msg_flags = MSG_NOSIGNAL;
    entry->flags = IOSQE_CQE_SKIP_SUCCESS;
}

static void take(struct ring *ring, const struct io_uring_cqe *completion) {
    int connection = (int)completion->user_data;
    struct connection *one = &connections[connection];
    if (completion->flags & IORING_CQE_F_BUFFER) {
        unsigned short buffer = (unsigned short)(completion->flags >> IORING_CQE_BUFFER_SHIFT);
        const unsigned char *bytes = ring->bytes + (size_t)buffer * BUFFER_BYTES;
        int whole = !one->received && is_answered(one, bytes, completion->res);
        if (!whole) {
            memcpy(one->answer + one->received, bytes, (size_t)completion->res);
            one->received += completion->res;
        }
        give_back(ring, buffer);
        if (whole || is_answered(one, one->answer, one->received)) {
            one->received = 0;
            operations++;
            queue_send(ring, connection, 0);
        }
    } else if (completion->res <= 0 && completion->res != -105 /* ENOBUFS */) {
        exit(2);
    }
    if (!(completion->flags & IORING_CQE_F_MORE)) queue_receive(ring, connection);
}

static void run_io_uring(int count, double until_s) {
    struct ring ring = open_ring(count);
    for (int i = 0; i < count; i++) queue_receive(&ring, i), queue_send(&ring, i, 1);
    while (now_s() < until_s) {
        enter(&ring, 1);
        unsigned head = *ring.cq_head;
        for (; head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE); head++)
            take(&ring, &ring.completions[head & *ring.cq_mask]);
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments != 7) return 2;
    int count = atoi(arguments[2]);
    rows = strtoull(arguments[6], 0, 10);
    connections = calloc((size_t)count, sizeof *connections);
    for (int i = 0; i < count; i++) open_connection(&connections[i], arguments[4], arguments[5]);
    double began_s = now_s(), until_s = began_s + atof(arguments[3]);
    checking = !strcmp(arguments[1], "checked");
    for (int i = 0; i < count; i++) connections[i].began_ns = now_ns();
    strcmp(arguments[1], "epoll") ? run_io_uring(count, until_s) : run_epoll(count, until_s);
    printf("%lu %.6f\n", operations, now_s() - began_s);
    return 0;
}
