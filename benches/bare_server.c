/* A server that costs next to nothing: it speaks as much of MariaDB's protocol as a point select needs, and gives every
 * client the same row. It holds more connections than a database could, so that what the driver takes for each of them
 * shows. Any login is accepted, and nothing is looked up.
 *
 * bare_server SOCKET
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { COM_QUIT = 0x01, COM_QUERY = 0x03, COM_STMT_PREPARE = 0x16, COM_STMT_EXECUTE = 0x17 };
enum { CONNECTIONS_MAX = 1 << 20, EVENTS = 1024, REQUEST_BYTES = 4096, ANSWER_BYTES = 1024 };
/* LONG_PASSWORD is left out: MariaDB says so. Of the rest: protocol 4.1, plugins, no EOF packets, databases. */
enum { CAPABILITIES = 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19 | 1 << 24 };

static unsigned char has_logged_in[CONNECTIONS_MAX];

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

/* Appends a packet; gives the place behind it. */
static unsigned char *put(unsigned char *at, int sequence, const void *payload, int length) {
    at[0] = (unsigned char)length, at[1] = (unsigned char)(length >> 8), at[2] = 0, at[3] = (unsigned char)sequence;
    memcpy(at + 4, payload, (size_t)length);
    return at + 4 + length;
}

static unsigned char *put_column(unsigned char *at, int sequence, unsigned char type) {
    unsigned char payload[] = {3, 'd', 'e', 'f', 0, 0, 0, 1, 'c', 0, 0x0c, 45, 0, 120, 0, 0, 0, type, 0, 0, 0, 0, 0};
    return put(at, sequence, payload, sizeof payload);
}

static int greeting(unsigned char *answer) {
    unsigned char payload[128] = {10};
    int length = 1 + sprintf((char *)payload + 1, "11.8.0-MariaDB-bare") + 1;
    uint32_t capabilities = CAPABILITIES;
    length += 4;
    memset(payload + length, 'x', 8), length += 9;
    memcpy(payload + length, &capabilities, 2), payload[length + 2] = 45, payload[length + 3] = 2;
    memcpy(payload + length + 5, (char *)&capabilities + 2, 2), payload[length + 7] = 21;
    length += 18;
    memset(payload + length, 'x', 12), length += 13;
    length += sprintf((char *)payload + length, "mysql_native_password") + 1;
    return (int)(put(answer, 0, payload, length) - answer);
}

/* What is said to one command. */
static int answer_to(int command, unsigned char *answer) {
    static const unsigned char ok[] = {0, 0, 0, 2, 0, 0, 0}, end[] = {0xfe, 0, 0, 2, 0, 0, 0}, one_column[] = {1};
    static const unsigned char prepared[] = {0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0};
    static const char number[] = "\x09" "100000000";
    unsigned char row[2 + 121] = {0, 0, 120}, *at = answer;
    if (command == COM_STMT_PREPARE) {
        at = put(at, 1, prepared, sizeof prepared);
        at = put_column(at, 2, 0x08);
        at = put_column(at, 3, 0xfe);
    } else if (command == COM_QUERY) {
        at = put(at, 1, one_column, 1);
        at = put_column(at, 2, 0x08);
        at = put(at, 3, number, sizeof number - 1);
        at = put(at, 4, end, sizeof end);
    } else if (command == COM_STMT_EXECUTE) {
        at = put(at, 1, one_column, 1);
        at = put_column(at, 2, 0xfe);
        memset(row + 3, 'c', 120);
        at = put(at, 3, row, sizeof row);
        at = put(at, 4, end, sizeof end);
    } else {
        at = put(at, 1, ok, sizeof ok);
    }
    return (int)(at - answer);
}

static void serve(int client) {
    unsigned char request[REQUEST_BYTES], answer[ANSWER_BYTES];
    static const unsigned char logged_in[] = {0, 0, 0, 2, 0, 0, 0};
    ssize_t got = recv(client, request, sizeof request, MSG_DONTWAIT);
    if (got < 5 || (has_logged_in[client] && request[4] == COM_QUIT)) {
        close(client);
        return;
    }
    int length = has_logged_in[client] ? answer_to(request[4], answer)
                                       : (int)(put(answer, request[3] + 1, logged_in, sizeof logged_in) - answer);
    has_logged_in[client] = 1;
    if (send(client, answer, (size_t)length, MSG_NOSIGNAL) != length) close(client);
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments != 2) return 2;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned char first[ANSWER_BYTES];
    int greeting_length = greeting(first), set = epoll_create1(EPOLL_CLOEXEC);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strncpy(address.sun_path, arguments[1], sizeof address.sun_path - 1);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) give_up("listen");
    struct epoll_event ready[EVENTS], event = {EPOLLIN, {.fd = listener}};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    puts("ready"), fflush(stdout);
    for (;;) {
        int many = epoll_wait(set, ready, EVENTS, -1);
        for (int i = 0; i < many; i++) {
            if (ready[i].data.fd != listener) {
                serve(ready[i].data.fd);
                continue;
            }
            int client = accept4(listener, 0, 0, SOCK_CLOEXEC);
            if (client < 0 || client >= CONNECTIONS_MAX) give_up("accept");
            has_logged_in[client] = 0;
            event.data.fd = client;
            epoll_ctl(set, EPOLL_CTL_ADD, client, &event);
            if (send(client, first, (size_t)greeting_length, MSG_NOSIGNAL) != greeting_length) close(client);
        }
    }
}
